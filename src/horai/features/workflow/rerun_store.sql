-- Reads and user operations of runs. An operation locks the row of the run, and waits for the lock.

-- name: lock_run
-- tenant: by workflow
-- Waits for the lock. Used by a rerun and a cancel.
select run.* from horai.workflow_run run where run.id = $1 and run.workflow_id = $2 for no key update;

-- name: retire_nodes
-- tenant: by workflow
-- A rerun replaces these nodes.
update horai.workflow_node set is_current = false where run_id = $1 and name = any ($2::text[]) and is_current
returning name, payload, instance_id;

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
select run.* from horai.workflow_run run
where run.workflow_id = $1 and (run.fire_time, run.id) < ($2, $3) order by run.fire_time desc, run.id desc limit $4;

-- name: list_runs_in
-- tenant: by workflow
-- Like list_runs, limited to one phase.
select run.* from horai.workflow_run run
where run.workflow_id = $1 and run.phase = $5::smallint and (run.fire_time, run.id) < ($2, $3)
order by run.fire_time desc, run.id desc limit $4;

-- name: last_runs
-- tenant: by workflow
-- The newest run of each workflow.
select run.* from unnest($1::bigint[]) as flow(id)
cross join lateral (
    select * from horai.workflow_run where workflow_id = flow.id order by fire_time desc, id desc limit 1
) run;

-- name: run_nodes_now
-- tenant: by workflow
-- The nodes of a run with the known data of their instances, in one snapshot: a row that moves is in one of the two tables.
select node.name, node.job_id, node.instance_id, node.after, node.generation, node.ended, job.name as job, job.encrypted,
    coalesce(live.state, past.state) as state, past.reason, coalesce(live.attempt, past.attempt) as attempt,
    coalesce(live.error_code, past.error_code) as error_code, coalesce(live.error_msg, past.error_msg) as error_msg,
    coalesce(live.claimed_at, past.claimed_at) as claimed_at, past.finished_at, past.result
from horai.workflow_node node
join horai.job on job.id = node.job_id
left join horai.instance_live live on live.id = node.instance_id
left join lateral (
    select * from horai.instance_history history where history.id = node.instance_id and history.finished_at >= $2 limit 1
) past on true
where node.run_id = $1 and node.is_current order by node.name;
