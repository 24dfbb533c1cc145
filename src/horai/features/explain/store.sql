-- Facts about one job around one instant. Every statement uses an index and reads a bounded number of rows.

-- name: instance_at
-- tenant: by job
-- $1 job, $2 fire time, $3 the earliest possible end of an instance with this fire time. One snapshot reads both tables: a row
-- that moves is in one of them. Slots sort before other instances, the latest generation first.
select id, slot >= 0 as is_slot, lane = 0 as is_parked, is_suspended, is_rewinding from (
    select id, slot, lane, coalesce(state = 0 and suspended_until = due, false) as is_suspended, exists (
        select from horai.step mark where mark.instance_id = instance_live.id and mark.kind = 5) as is_rewinding
    from horai.instance_live where job_id = $1 and fire_time = $2
    union all
    select id, slot, lane, false, false from horai.instance_history where job_id = $1 and fire_time = $2 and finished_at >= $3
) instance
order by slot desc, id desc limit 1;

-- name: others_under_way
-- tenant: by job
-- Instances of the job $1 that were under way at $2, except $3: created by then, not over, and not themselves cancelled by
-- the overlap policy. Only the nearest $4 by fire time are read.
select id, fire_time, slot >= 0 as is_slot, is_parked, claimed_at from (
    (select id, fire_time, slot, lane = 0 and state <> 1 as is_parked, claimed_at, created_at, key,
        null::timestamptz as finished_at, null::smallint as reason
    from horai.instance_live where job_id = $1 and fire_time <= $2 order by fire_time desc limit $4)
    union all
    (select id, fire_time, slot, false, claimed_at, created_at, key, finished_at, reason
    from horai.instance_history where job_id = $1 and fire_time <= $2 order by fire_time desc limit $4)
) other
where id <> $3 and key is null and created_at <= $2 and (finished_at is null or finished_at >= $2) and reason is distinct from 3
order by fire_time desc, id desc limit 100;

-- name: skip_of_job
-- tenant: by job
-- The range of the job $1 that covers $2. Ranges of a job follow one another: reading the last 10 that begin by then is enough.
select from_time, to_time, slots, reason from (
    select * from horai.skip where job_id = $1 and from_time <= $2 order by from_time desc limit 10
) last
where to_time >= $2 order by from_time desc limit 1;

-- name: skip_of_schedule
-- tenant: by schedule
-- The range of every job of the schedule $1 that covers $2.
select from_time, to_time, slots, reason from (
    select * from horai.skip where schedule_id = $1 and job_id is null and from_time <= $2 order by from_time desc limit 10
) last
where to_time >= $2 order by from_time desc limit 1;

-- name: catchup_of_job
-- tenant: by job
-- Late slots that are still to be created, $2 among them.
select next_time, until_time from horai.catchup
where job_id = $1 and next_time <= $2 and until_time >= $2 order by next_time limit 1;

-- name: cursor_of_schedule
-- tenant: none
select fire_time, last_job from horai.schedule where id = $1;

-- name: place_of_instance
-- tenant: by instance
-- Whether an instance is a slot, is in the parking lane, is suspended, and is marked to be compensated.
select slot >= 0 as is_slot, lane = 0 as is_parked, coalesce(state = 0 and suspended_until = due, false) as is_suspended, exists (
    select from horai.step mark where mark.instance_id = instance_live.id and mark.kind = 5) as is_rewinding
from horai.instance_live where id = $1
union all
select slot >= 0, false, false, false from horai.instance_history where id = $1
limit 1;

-- name: version_awaited
-- tenant: by instance
-- The version of the code that a suspended instance waits for; null if it waits for something else.
select version.n from horai.step version join horai.instance_live live on live.id = version.instance_id
where live.id = $1 and version.kind = 7 and version.name = 'offer' and version.progress = 0 and version.until = live.suspended_until;

-- name: sensor_until
-- tenant: by instance
-- The deadline of an instance that is a sensor of a workflow; null for other instances.
select live.expires_at from horai.instance_live live join horai.workflow_node node on node.instance_id = live.id
where live.id = $1 and node.sensor is not null limit 1;

-- name: dispatch_facts
-- tenant: $1
-- The limits of the governor, and whether the tenant holds its own dispatch.
select horai.controls() as controls, exists (select from horai.tenant_hold where tenant_id = $1 and kind = 'dispatch') as is_paused;

-- name: awaited_assets
-- tenant: by job
select asset.name, (select count(*) from (select from horai.asset_delivery told where told.job_id = wanted.job_id
    and told.asset_id = wanted.asset_id and told.instance_id is null limit 1000) few) as pending, waits.is_any
from horai.asset_use wanted join horai.asset on asset.id = wanted.asset_id join horai.asset_wait waits on waits.job_id = wanted.job_id
where wanted.job_id = $1 and wanted.role = 1 order by asset.name;

-- name: open_nodes_of
-- tenant: by workflow
-- The nodes of the run $1 that work now or wait, those that work first, at most $2.
select node.name, node.instance_id, live.state from horai.workflow_node node
left join lateral (select state from horai.instance_live where id = node.instance_id limit 1) live on true
where node.run_id = $1 and node.is_current and node.ended is null order by coalesce(live.state, 1) = 6, node.name limit $2;
