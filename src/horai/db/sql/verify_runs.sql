-- Checks of the invariants of workflow runs, as in verify.sql.

-- name: verify_parents_done
-- tenant: platform
-- If a workflow node with the rule all_success (0) or none_failed (3) may run or runs, all of its parents succeeded, or were skipped if
-- the rule is none_failed; the transaction that released it recorded that. Other rules: a dead parent may be replayed meanwhile.
select format('instance %s is %s as the node %s of run %s, and its parent %s is not done', live.id, horai.state_name(live.state),
    node.name, node.run_id, parent.name) as example, count(*) over () as violations
from (
    select node.*, node.instance_id as runs from horai.workflow_node node where node.map is null
    union all
    select node.*, item.instance_id from horai.workflow_node node
    join horai.workflow_item item on item.run_id = node.run_id and item.name = node.name and item.generation = node.generation
) node
join horai.instance_live live on live.id = node.runs and live.state <> 6
join horai.workflow_node parent on parent.run_id = node.run_id and parent.is_current and parent.name = any (node.after)
where node.is_current and node.trigger_rule in (0, 3)
    and (parent.ended = 2 or node.trigger_rule = 3 and parent.ended = 5 and parent.cause is not null) is not true
order by live.id limit $1;

-- name: verify_map_items
-- tenant: platform
-- A map has made the items 0, 1, … up to its count, and counts those that have ended. One that has succeeded has made all, and all have ended.
select format('the map %s of run %s has made %s of %s items and counts %s ends; there are %s items, %s of them ended', node.name, node.run_id,
    node.map_made, node.map_total, node.map_ended, item.count, item.ended) as example, count(*) over () as violations
from horai.workflow_node node cross join lateral (
    select count(*) as count, count(ended) as ended, coalesce(max(position) + 1, 0) as next from horai.workflow_item
    where run_id = node.run_id and name = node.name and generation = node.generation
) item
where node.map is not null and (node.map_made <> item.count or item.next <> item.count or node.map_ended <> item.ended
    or node.ended = 2 and (node.map_made <> node.map_total or item.ended <> item.count))
order by node.run_id, node.name limit $1;
