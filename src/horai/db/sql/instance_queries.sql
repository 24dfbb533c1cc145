-- Queries about instances. A statement that counts the hot table says so.

-- name: instance_by_id
-- tenant: $1
select view.*, job.name as job, job.encrypted, job.definition ->> 'timezone' as timezone, lane.queue, lane.priority, node.name as node_name
from (
    select {{read}}, tenant_id, lane, own_lane, null::smallint as reason, due, null::timestamptz as finished_at, null::json as result, payload
    from horai.instance_live where id = $2
    union all
    select {{read}}, tenant_id, lane, own_lane, reason, null, finished_at, result, payload
    from horai.instance_history where id = $2
) view
join horai.job on job.id = any (array[view.job_id])
left join horai.lane on lane.id = case when view.lane = 0 then coalesce(view.own_lane, job.lane_id) else view.lane end
left join horai.node on node.incarnation = view.node
where view.tenant_id = $1;

-- name: live_by_ids
-- tenant: by instance
-- Returns rows that the caller's transaction has just written: there is no need to search every partition of history.
select {{live.read}}, null::smallint as reason, live.due, null::timestamptz as finished_at, null::json as result, live.payload,
    job.name as job, job.encrypted, lane.queue, lane.priority, null::text as node_name
from horai.instance_live live
join horai.job on job.id = live.job_id
join horai.lane on lane.id = case when live.lane = 0 then coalesce(live.own_lane, job.lane_id) else live.lane end
where live.id = any ($1::bigint[]);

-- name: remembered_instance
-- tenant: $1
-- Returns the last instance of a key of the job $2 after it has left history, as far as it is remembered.
select past.last_id as id, past.job_id, past.key, past.state, past.reason, past.fire_time, past.execute_time, past.born_for, -past.last_id as slot,
    past.attempt, past.retry_count, past.fence, null::bigint as node, past.version, null::bigint as supersedes, null::bigint as replay_of,
    null::text as error_code, null::text as error_msg, past.created_at, past.claimed_at, null::timestamptz as due, past.finished_at,
    null::json as result, null::json as payload, job.name as job, job.encrypted, lane.queue, lane.priority, null::text as node_name
from horai.key_past past
join horai.job on job.id = past.job_id
join horai.lane on lane.id = job.lane_id
where past.tenant_id = $1 and past.job_id = $2 and past.key = $3;

-- name: attempts_of
-- tenant: by instance
select attempt, fence, node, started_at, finished_at, late, outcome, error_code, error_msg
from horai.attempt where instance_id = $1 order by attempt, finished_at limit $2;

-- name: timeline_of
-- tenant: by instance
select seq, at, kind, data from horai.event where instance_id = $1 order by at, seq limit 500;

-- name: dead_letters_since
-- tenant: $1
select count(*) as letters from horai.dead_letter where tenant_id = $1 and created_at > clock_timestamp() - $2::interval;

-- name: retry_backlog
-- tenant: platform
-- Counts the hot table: called only at start and by the slow reconciliation.
-- A retry that was given back, because its host or the governor holds it, is INIT and waits as well.
select count(*) as waiting from horai.instance_live where (retry_count > 0 or lost > 0) and (state = 3 or state = 0 and retry_count > 0);

-- name: ended
-- tenant: $1
-- Returns the final instances of $2 and their outcomes. A row that is being moved to history is found by the next call.
select past.id, past.state, past.reason, past.result, past.error_code, past.error_msg, case when job.encrypted then job.name end as sealed_for
from horai.instance_history past join horai.job on job.id = any (array[past.job_id])
where past.id = any ($2::bigint[]) and past.tenant_id = $1;
