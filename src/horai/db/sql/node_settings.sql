-- Settings of claimed instances that are nodes of workflows. Only jobs in a workflow are asked about.

-- name: settings_of_nodes
-- tenant: by instance
-- One row for each node, with the instances that have its settings: the items of a map have those of their node. The replay of a dead node may be
-- claimed before its node points to it: it has the settings of the dead instance. The policy of a node that starts a run of another workflow is
-- about failed runs, not about the start.
select array[live.id] as ids, run.interval_start, case when node.child is null then node.retry end as retry, node.sensor ->> 'every' as poll
from horai.instance_live live
join horai.workflow_node node on node.instance_id = any (array[live.id, live.replay_of])
join horai.workflow_run run on run.id = node.run_id
where live.id = any ($1::bigint[])
union all
select item.ids, run.interval_start, node.retry, null
from (
    select item.run_id, item.name, item.generation, array_agg(live.id) as ids
    from horai.instance_live live join horai.workflow_item item on item.instance_id = any (array[live.id, live.replay_of])
    where live.id = any ($1::bigint[]) group by item.run_id, item.name, item.generation
) item
join horai.workflow_node node on node.run_id = item.run_id and node.name = item.name and node.generation = item.generation
join horai.workflow_run run on run.id = item.run_id;
