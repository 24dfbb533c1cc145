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
-- In a blocked run, a node that has not ended waits. The text of an encrypted job's error is sealed and left out. A node with a
-- tolerant trigger rule (1 all_done, 2 one_failed) waits for no dead node. cause 4: the node chose a node that is not after it; 5 to 8: a dead map. Its
-- instance is that of the first item that failed, or that of the node or run that has no list.
select node.run_id, node.name, case when node.trigger_rule in (1, 2) then '{}' else node.after end as after, node.ended, blamed.id as instance_id,
    node.job_id, job.name as job, coalesce((array['BRANCH_UNKNOWN', 'MAP_NOT_LIST', 'MAP_LIST_TOO_LARGE', 'MAP_TOO_LONG', 'MAP_FAILED', 'SENSOR_DEADLINE'])[node.cause - 3],
        letter.error_code) as error_code,
    case when not job.encrypted then letter.error_msg end as error_msg, letter.created_at as died_at,
    coalesce(letter.replay_status = 'NEW', false) as has_letter
from horai.workflow_node node join horai.job on job.id = any (array[node.job_id])
cross join lateral (select case when node.map is null or node.ended is distinct from 4 then node.instance_id else coalesce(
    (select item.instance_id from horai.workflow_item item where item.run_id = node.run_id and item.name = node.name
        and item.generation = node.generation and item.ended in (4, 5) order by item.position limit 1),
    (select source.instance_id from horai.workflow_node source
        where source.run_id = node.run_id and source.name = node.map ->> 'over' and source.is_current and source.map is null),
    node.run_id) end as id) blamed
left join horai.dead_letter letter on node.ended = 4 and letter.instance_id = any (array[blamed.id])
where node.run_id = any ($1::bigint[]) and node.is_current order by node.run_id, node.name;

-- name: open_letters
-- tenant: by instance
-- Those of the dead instances whose dead letters can be replayed.
select instance_id from horai.dead_letter where instance_id = any ($1::bigint[]) and replay_status = 'NEW';

-- name: run_of_blocked
-- tenant: by instance
-- The run of a node, if the node is current, or of an item.
select run_id from horai.workflow_node where instance_id = $1 and is_current
union
select run_id from horai.workflow_item where instance_id = $1;
