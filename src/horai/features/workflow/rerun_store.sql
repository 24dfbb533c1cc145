-- Reads and user operations of runs. An operation locks the row of the run, and waits for the lock.

-- name: lock_run
-- tenant: by workflow
-- Waits for the lock. Used by a rerun and a cancel.
select run.* from horai.workflow_run run where run.id = $1 and run.workflow_id = $2 for no key update;

-- name: retire_nodes
-- tenant: by workflow
-- A rerun replaces these nodes.
update horai.workflow_node set is_current = false where run_id = $1 and name = any ($2::text[]) and is_current
returning name, payload, instance_id, retry, map, produces, child, sensor;

-- name: delay_starts
-- tenant: by instance
-- Moves the start of instances that this transaction has made due, and with it the deadline of a sensor. No other transaction sees
-- them yet.
with start as materialized (select greatest($2::timestamptz, clock_timestamp()) as at)
update horai.instance_live live set execute_time = $2, due = start.at, expires_at = live.expires_at + (start.at - live.due)
from start where live.id = any ($1::bigint[]) and live.state = 0
returning live.id, live.lane, live.due;

-- name: reopen_run
-- tenant: by workflow
update horai.workflow_run set phase = 0, generation = generation + 1, given_up = false, finished_at = null,
    settled = settled or phase <> 0 where id = $1;

-- name: give_up_run
-- tenant: by workflow
update horai.workflow_run set given_up = true where id = $1 and finished_at is null;

-- name: find_run
-- tenant: by workflow
select run.* from horai.workflow_run run where run.id = $1 and run.workflow_id = $2;

-- name: list_runs
-- tenant: by workflow
-- reversed: list_runs_upwards
-- $5: the first fire time; $6: fire times before this one.
select * from horai.workflow_run
where workflow_id = $1 and (fire_time, id) < ($2, $3) and fire_time >= $5 and fire_time < $6 order by fire_time desc, id desc limit $4;

-- name: list_runs_in
-- tenant: by workflow
-- reversed: list_runs_in_upwards
-- Like list_runs, limited to one phase.
select * from horai.workflow_run
where workflow_id = $1 and phase = $7::smallint and (fire_time, id) < ($2, $3) and fire_time >= $5 and fire_time < $6
order by fire_time desc, id desc limit $4;

-- name: count_runs
-- tenant: by workflow
-- The runs in the phases $2, at most $5.
select count(*) from (
    select from horai.workflow_run
    where workflow_id = $1 and phase = any ($2::smallint[]) and fire_time >= $3 and fire_time < $4 limit $5::bigint
) matching;

-- name: runs_matching
-- tenant: by workflow
-- A page by id, after $2, of the unfinished runs in the phases $3 that are not cancelled. $7: ids, null for any.
select id from horai.workflow_run
where workflow_id = $1 and finished_at is null and not given_up and id > $2 and phase = any ($3::smallint[])
    and fire_time >= $4 and fire_time < $5 and ($7::bigint[] is null or id = any ($7))
order by id limit $6;

-- name: pending_runs
-- tenant: by workflow
-- A page by id, after $2, of the runs with these ids ($3) that have not started: their instance is live and no run has its id.
select live.id from horai.workflow flow join horai.instance_live live on live.job_id = flow.job_id
where flow.id = $1 and live.id > $2 and live.id = any ($3::bigint[]) and live.fire_time >= $4 and live.fire_time < $5
    and not exists (select from horai.workflow_run run where run.id = live.id)
order by live.id limit $6;

-- name: last_runs
-- tenant: by workflow
-- The newest run of each workflow.
select run.* from unnest($1::bigint[]) as flow(id)
cross join lateral (
    select * from horai.workflow_run where workflow_id = flow.id order by fire_time desc, id desc limit 1
) run;

-- name: run_nodes_now
-- tenant: by workflow
-- The nodes of a run with the known data of their instances, in one snapshot: a row that moves is in one of the two tables. fault_id: of a dead
-- map, the first dead item, or else the instance that should have returned the list or the payload.
select node.name, node.job_id, node.instance_id, node.after, node.generation, node.ended, job.name as job, job.encrypted,
    node.trigger_rule, node.cause, node.chosen, node.map, node.map_total, node.map_made, node.map_ended, node.map_failed,
    node.sensor, coalesce(live.expires_at, past.expires_at) as expires_at, case when live.state in (0, 3) then live.due end as due, node.child, node.child_attempt, child.id is not null as has_child,
    case when node.child is not null and live.id is null and past.state = 4 and child.id is not null then (array[1, 4, 2, 5])[child.phase + 1]
        when node.map is null then coalesce(live.state, past.state) when node.ended is null and node.map_total is not null then 1
        when node.ended is null then 6 end as state,
    past.reason, coalesce(live.attempt, past.attempt) as attempt,
    coalesce(live.error_code, past.error_code) as error_code, coalesce(live.error_msg, past.error_msg) as error_msg,
    coalesce(node.map_started_at, live.claimed_at, past.claimed_at) as claimed_at,
    coalesce(node.map_finished_at, past.finished_at) as finished_at, coalesce(node.map_result, node.child_result, past.result) as result,
    case when node.map is not null and node.ended = 4 then coalesce(
        (select item.instance_id from horai.workflow_item item where item.run_id = node.run_id and item.name = node.name
            and item.generation = node.generation and item.ended in (4, 5) order by item.position limit 1),
        (select source.instance_id from horai.workflow_node source
            where source.run_id = node.run_id and source.name = node.map ->> 'over' and source.is_current and source.map is null),
        node.run_id) end as fault_id
from horai.workflow_node node
join horai.job on job.id = node.job_id
left join horai.workflow_run child on node.child is not null and child.id = node.instance_id
left join horai.instance_live live on live.id = node.instance_id
left join lateral (
    select * from horai.instance_history history where history.id = node.instance_id and history.finished_at >= $2 limit 1
) past on true
where node.run_id = $1 and node.is_current order by node.name;
