-- Queries of the harness. Created after the migrations.

-- Returns the work due now by kind, and in the row `next` the next due time: null if there is none.
create function virtual_time.outlook() returns table (kind text, shard smallint, lane integer, at timestamptz, rows bigint)
language sql volatile as $$
    with present as materialized (
        select clock_timestamp() as now
    ), waiting as materialized (
        select live.shard, live.lane, live.due from horai.instance_live live where live.state in (0, 3) and live.lane <> 0
    ), nodes as materialized (
        select lease_until, fenced_at is not null or stopped_at is not null as is_closed from horai.node where rescued_at is null
    )
    select 'place', shard, lane, min(due), count(*) from waiting, present where due <= now group by shard, lane
    union all
    select 'trigger', null, null, min(fire_time), count(*) from horai.schedule, present where fire_time <= now having count(*) > 0
    union all
    select 'rescuer', null, null, min(lease_until), count(*) from nodes, present where is_closed or lease_until < now having count(*) > 0
    union all
    select 'janitor', null, null, null, (
        select count(*) from horai.instance_live live join horai.job on job.id = live.job_id where job.relane)
    where exists (select from horai.job where relane)
    union all
    select 'catch_up', null, null, null, count(*) from horai.catchup join horai.job on job.id = catchup.job_id
    where job.status = 0 and job.deleted_at is null having count(*) > 0
    union all
    select 'overlap_gate', null, null, null, count(*) from horai.job
    where status = 0 and deleted_at is null and (overlap <> 0 and exists (
            select from horai.instance_live live where live.job_id = job.id and live.slot >= 0 and live.lane = 0 and live.state <> 1
                and not exists (select from horai.backfill_instance own where own.instance_id = live.id))
        or after_finish is not null and (end_at is null or end_at > (select now from present)) and not exists (
            select from horai.instance_live live where live.job_id = job.id and live.slot >= 0
                and not exists (select from horai.backfill_instance own where own.instance_id = live.id)))
    having count(*) > 0
    union all
    select 'backfill', null, null, null, sum(made + skipped + succeeded + failed + cancelled)::bigint from horai.backfill
    join horai.job on job.id = backfill.job_id
    where backfill.finished_at is null and (backfill.status = 3 or backfill.status = 0 and job.status = 0 or exists (
        select from horai.backfill_instance own where own.backfill_id = backfill.id))
    having count(*) > 0
    union all
    select 'workflow', null, null, null, count(*) from horai.workflow_run run
    where finished_at is null and exists (
        select from horai.workflow_node node left join horai.instance_live live on live.id = node.instance_id
        where node.run_id = run.id and node.is_current and (
            node.ended is null and live.id is null
            or node.ended = 4 and (
                exists (select from horai.instance_live replay where replay.replay_of = node.instance_id)
                or exists (select from horai.instance_history replay where replay.replay_of = node.instance_id))
            or live.state = 6 and not exists (select from horai.workflow_node parent where parent.run_id = run.id
                and parent.is_current and parent.name = any (node.after) and parent.ended is distinct from 2)))
    having count(*) > 0
    union all
    select 'next', null, null, least(
        (select min(due) from waiting where due > now),
        (select min(fire_time) from horai.schedule where fire_time > now),
        (select min(next_start) from horai.backfill where finished_at is null and status = 0 and next_start > now),
        (select min(lease_until) + interval '1 microsecond' from nodes where not is_closed and lease_until >= now)
    ), null
    from present
$$;

-- Returns the current state of instances, live or final.
create function virtual_time.came_to(ids bigint[])
returns table (id bigint, fence bigint, state text, result json, error_code text, error_msg text)
language sql volatile as $$
    select live.id, live.fence, horai.state_name(live.state), null::json, live.error_code, live.error_msg
    from horai.instance_live live where live.id = any (ids)
    union all
    select past.id, past.fence, horai.state_name(past.state), past.result, past.error_code, past.error_msg
    from horai.instance_history past where past.id = any (ids)
$$;
