-- Instances related to one instance: its neighbours in a workflow run, its replays, the instance that superseded it, its caller and its children.

-- name: run_of_instance
-- tenant: by instance
-- Returns the workflow run of an instance, and its node in that run. An item of a map belongs to the node that is the map.
select run.id as run_id, workflow.id as workflow_id, workflow.name as workflow, me.name as node
from (
    select run_id, name from horai.workflow_node where instance_id = $1
    union all
    select run_id, name from horai.workflow_item where instance_id = $1
) me
join horai.workflow_run run on run.id = me.run_id
join horai.workflow on workflow.id = run.workflow_id;

-- name: kin_of_instance
-- tenant: by instance
-- Returns the direct parents and children of an instance in its run, with the current state of those that have not ended. Maps have no instance
-- and are left out.
select node.name = any (me.after) as is_parent, node.name, node.instance_id, coalesce(node.ended, live.state) as state
from horai.workflow_node me
join horai.workflow_node node on node.run_id = me.run_id and node.is_current and node.name <> me.name
left join horai.instance_live live on live.id = node.instance_id
where me.instance_id = $1 and me.map is null and node.map is null and (node.name = any (me.after) or me.name = any (node.after))
order by node.name;

-- name: successors_of
-- tenant: by instance
-- Returns the replays of an instance, and the instance that superseded it ($2 job, $3 key).
select true as is_replay, id from horai.instance_live where replay_of = $1
union all
select true, id from horai.instance_history where replay_of = $1
union all
select false, id from horai.instance_live where job_id = $2 and key = $3 and supersedes = $1
union all
select false, id from horai.instance_history where job_id = $2 and key = $3 and supersedes = $1
order by id limit 100;

-- name: caller_of
-- tenant: by instance
-- The instance whose call has created this one.
select parent_id from horai.child_call where child_id = $1;

-- name: children_awaited
-- tenant: by instance
-- The live instances that a suspended function waits for, at most $2.
select child.id, job.name as job from horai.step asked
join horai.instance_live child on child.id = asked.child join horai.job on job.id = child.job_id
where asked.instance_id = $1 and asked.kind = 6 and asked.progress = 0 order by child.id limit $2;
