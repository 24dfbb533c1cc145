-- Blocked runs of workflows, and the nodes that their root causes are found in.

-- name: blocked_runs
-- tenant: $1
-- The runs before ($2, $3) by fire time and id, newest first.
select run.id, run.workflow_id, workflow.name as workflow, run.fire_time, run.created_at
from horai.workflow cross join lateral (
    select * from horai.workflow_run one
    where one.workflow_id = workflow.id and one.phase = 1 and (one.fire_time, one.id) < ($2, $3)
    order by one.fire_time desc, one.id desc limit $4
) run
where workflow.tenant_id = $1 and workflow.deleted_at is null
order by run.fire_time desc, run.id desc limit $4;

-- name: nodes_of_blocked
-- tenant: by workflow
-- In a blocked run, a node that has not ended waits. The text of an encrypted job's error is sealed and left out.
select node.run_id, node.name, node.after, node.ended, node.instance_id, node.job_id, job.name as job, letter.error_code,
    case when not job.encrypted then letter.error_msg end as error_msg, letter.created_at as died_at,
    coalesce(letter.replay_status = 'NEW', false) as has_letter
from horai.workflow_node node join horai.job on job.id = any (array[node.job_id])
left join horai.dead_letter letter on node.ended = 4 and letter.instance_id = node.instance_id
where node.run_id = any ($1::bigint[]) and node.is_current order by node.run_id, node.name;

-- name: open_letters
-- tenant: by instance
-- Those of the dead instances whose dead letters can be replayed.
select instance_id from horai.dead_letter where instance_id = any ($1::bigint[]) and replay_status = 'NEW';

-- name: run_of_blocked
-- tenant: by instance
-- The run of a node, if the node is current.
select run_id from horai.workflow_node where instance_id = $1 and is_current;
