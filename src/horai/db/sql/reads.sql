-- What people ask. Lists read at most a page and go on from a cursor (fire_time, id); nothing here counts the hot table.

-- name: instance_by_id
select view.*, job.name as job, lane.queue, lane.priority, node.name as node_name
from (
    select id, job_id, tenant_id, lane, key, state, null::smallint as reason, fire_time, execute_time, born_for, slot, due, attempt, retry_count,
        fence, node, version, supersedes, replay_of, payload, error_code, error_msg, created_at, claimed_at, null::timestamptz as finished_at,
        null::json as result
    from horai.instance_live where id = $2
    union all
    select id, job_id, tenant_id, lane, key, state, reason, fire_time, execute_time, born_for, slot, null, attempt, retry_count,
        fence, node, version, supersedes, replay_of, payload, error_code, error_msg, created_at, claimed_at, finished_at, result
    from horai.instance_history where id = $2
) view
join horai.job on job.id = view.job_id
left join horai.lane on lane.id = case when view.lane = 0 then job.lane_id else view.lane end
left join horai.node on node.incarnation = view.node
where view.tenant_id = $1;

-- name: live_by_id
-- A row that the caller's transaction has just made: no need to look into every partition of history.
select live.id, live.job_id, live.key, live.state, null::smallint as reason, live.fire_time, live.execute_time, live.born_for, live.slot, live.due,
    live.attempt, live.retry_count, live.fence, live.node, live.version, live.supersedes, live.replay_of, live.payload, live.error_code,
    live.error_msg, live.created_at, live.claimed_at, null::timestamptz as finished_at, null::json as result,
    job.name as job, lane.queue, lane.priority, null::text as node_name
from horai.instance_live live
join horai.job on job.id = live.job_id
join horai.lane on lane.id = case when live.lane = 0 then job.lane_id else live.lane end
where live.id = $1;

-- name: list_live
select live.id, live.job_id, live.key, live.state, null::smallint as reason, live.fire_time, live.execute_time, live.born_for, live.slot, live.due,
    live.attempt, live.retry_count, live.fence, live.node, live.version, live.supersedes, live.replay_of, live.payload, live.error_code,
    live.error_msg, live.created_at, live.claimed_at, null::timestamptz as finished_at, null::json as result,
    job.name as job, lane.queue, lane.priority, node.name as node_name
from horai.instance_live live
join horai.job on job.id = live.job_id
left join horai.lane on lane.id = case when live.lane = 0 then job.lane_id else live.lane end
left join horai.node on node.incarnation = live.node
where live.tenant_id = $1 and (live.fire_time, live.id) < ($2, $3) and live.state = any ($5::smallint[])
    and ($6::bigint is null or live.job_id = $6) and ($7::text is null or live.key = $7)
    and ($8::timestamptz is null or live.fire_time >= $8) and ($9::timestamptz is null or live.fire_time < $9)
    and ($10::text is null or lane.queue = $10) and ($11::text is null or $11 = any (job.tags))
order by live.fire_time desc, live.id desc limit $4;

-- name: list_history
select past.id, past.job_id, past.key, past.state, past.reason, past.fire_time, past.execute_time, past.born_for, past.slot,
    null::timestamptz as due, past.attempt, past.retry_count, past.fence, past.node, past.version, past.supersedes, past.replay_of,
    past.payload, past.error_code, past.error_msg, past.created_at, past.claimed_at, past.finished_at, past.result,
    job.name as job, lane.queue, lane.priority, node.name as node_name
from horai.instance_history past
join horai.job on job.id = past.job_id
left join horai.lane on lane.id = case when past.lane = 0 then job.lane_id else past.lane end
left join horai.node on node.incarnation = past.node
where past.tenant_id = $1 and (past.fire_time, past.id) < ($2, $3) and past.state = any ($5::smallint[])
    and ($6::bigint is null or past.job_id = $6) and ($7::text is null or past.key = $7)
    and ($8::timestamptz is null or past.fire_time >= $8) and ($9::timestamptz is null or past.fire_time < $9)
    and ($10::text is null or lane.queue = $10) and ($11::text is null or $11 = any (job.tags))
order by past.fire_time desc, past.id desc limit $4;

-- name: attempts_of
select attempt, fence, node, started_at, finished_at, late, outcome, error_code, error_msg
from horai.attempt where instance_id = $1 order by attempt, finished_at limit $2;

-- name: timeline_of
select seq, at, kind, data from horai.event where instance_id = $1 order by at, seq limit 500;

-- name: dead_letters_since
select count(*) as letters from horai.dead_letter where tenant_id = $1 and created_at > clock_timestamp() - $2::interval;

-- name: retry_backlog
-- Counts the hot table: asked at start and by the slow reconciliation only.
select count(*) as waiting from horai.instance_live where state = 3;

-- name: ended
-- Which of these instances are final, and what they came to. A row that is moving is seen by the next look.
select id, state, reason, result, error_code, error_msg from horai.instance_history where id = any ($2::bigint[]) and tenant_id = $1;
