-- Queries of the harness. Created after the migrations.

-- Returns the work due now by kind, and in the row `next` the next due time: null if there is none.
create function virtual_time.outlook() returns table (kind text, shard smallint, lane integer, at timestamptz, rows bigint)
language sql volatile as $$
    with present as materialized (
        select clock_timestamp() as now
    ), waiting as materialized (
        select live.shard, live.lane, live.due from horai.instance_live live where live.state in (0, 3) and live.lane <> 0
            and (live.expires_at is null or live.expires_at > clock_timestamp())
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
    select 'key_gate', null, null, null, count(*) from horai.instance_live live join horai.job on job.id = live.job_id
    where live.concurrency_key is not null and live.lane = 0 and live.state in (0, 3) and job.status = 0 and job.deleted_at is null
    having count(*) > 0
    union all
    select 'expirer', null, null, null, count(*) from horai.instance_live, present where expires_at <= now and state in (0, 3, 6)
    having count(*) > 0
    union all
    select 'assets', null, null, null, count(*) from (
        select from horai.instance_history done join horai.asset_use made on made.job_id = done.job_id and made.role = 0 and made.node = ''
        where done.state = 2 and done.finished_at >= made.since and (done.result is null or done.result::text !~ '^\s*\{\s*"horai:skip"')
            and not exists (select from horai.asset_update known where known.asset_id = made.asset_id and known.instance_id = done.id)
        union all
        select from horai.asset_wait waits join horai.job on job.id = waits.job_id
        where job.status = 0 and job.deleted_at is null
            and exists (select from horai.asset_delivery told where told.job_id = waits.job_id and told.instance_id is null)
            and (waits.is_any or not exists (
                select from horai.asset_use wanted where wanted.job_id = waits.job_id and wanted.role = 1 and not exists (
                    select from horai.asset_delivery told
                    where told.job_id = waits.job_id and told.asset_id = wanted.asset_id and told.instance_id is null)))
            and not (job.overlap <> 0 and exists (select from horai.instance_live live where live.id = waits.last_instance))
    ) ready having count(*) > 0
    union all
    select 'backfill', null, null, null, sum(made + skipped + succeeded + failed + cancelled)::bigint from horai.backfill
    join horai.job on job.id = backfill.job_id
    where backfill.finished_at is null and (backfill.status = 3 or backfill.status = 0 and job.status = 0 or exists (
        select from horai.backfill_instance own where own.backfill_id = backfill.id))
    having count(*) > 0
    union all
    select 'workflow', null, null, null, sum(run.id + (
        select count(*) from horai.workflow_node done where done.run_id = run.id and done.ended is not null))::bigint from horai.workflow_run run
    where finished_at is null and (undecided or exists (
        select from horai.workflow_node node left join horai.instance_live live on live.id = node.instance_id
        where node.run_id = run.id and node.is_current and (
            node.ended is null and node.map is null and live.id is null
            or node.ended is null and node.map is not null and (node.cause is not null or run.given_up
                or node.map_total is null and not exists (select from horai.workflow_node parent where parent.run_id = run.id
                    and parent.is_current and parent.name = any (node.after) and parent.ended is distinct from 2)
                or node.map_total is not null and (node.map_made = node.map_ended or exists (
                    select from horai.workflow_item item left join horai.instance_live one on one.id = item.instance_id
                    where item.run_id = run.id and item.name = node.name and item.generation = node.generation
                        and item.ended is null and one.id is null)))
            or node.map is not null and node.ended = 4 and exists (
                select from horai.workflow_item item where item.run_id = run.id and item.name = node.name
                    and item.generation = node.generation and item.ended = 4 and (
                        exists (select from horai.instance_live replay where replay.replay_of = item.instance_id)
                        or exists (select from horai.instance_history replay where replay.replay_of = item.instance_id)))
            or node.child is not null and exists (select from horai.workflow_run child where child.id = node.instance_id and (
                node.ended = 4 and child.phase <> 1 or node.ended is null and run.given_up and not child.given_up))
            or node.ended = 4 and (
                exists (select from horai.instance_live replay where replay.replay_of = node.instance_id)
                or exists (select from horai.instance_history replay where replay.replay_of = node.instance_id))
            or live.state = 6 and not exists (select from horai.workflow_node parent where parent.run_id = run.id
                and parent.is_current and parent.name = any (node.after) and parent.ended is distinct from 2))))
    having count(*) > 0
    union all
    select 'child_calls', null, null, null, count(*) from horai.child_call call
    where call.is_open and (
        not exists (select from horai.instance_live child where child.id = call.child_id)
            and exists (select from horai.instance_live live where live.id = call.parent_id and live.state in (0, 3))
        or exists (select from horai.instance_live child where child.id = call.child_id) and (
            not exists (select from horai.instance_live live where live.id = call.parent_id)
            or not exists (select from horai.step asked where asked.instance_id = call.parent_id and asked.kind = 6 and asked.name = call.name
                and asked.n = call.n and asked.progress = 0 and asked.child = call.child_id)))
    having count(*) > 0
    union all
    select 'next', null, null, least(
        (select min(due) from waiting where due > now),
        (select min(fire_time) from horai.schedule where fire_time > now),
        (select min(expires_at) from horai.instance_live where expires_at > now and state in (0, 3, 6)),
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
