-- Many runs of a workflow at once: a grid of runs and nodes, and one node over the last runs.

-- name: grid_nodes
-- tenant: by workflow
-- One row per node of the runs $1, with the state of it in each: what the run has recorded (a skip is $2), else the state of the live
-- instance, else that of the finished one. $3: no instance that a run has not recorded yet ended before this time. Only such
-- instances are looked up.
select node.name, array_agg(node.run_id) as runs, array_agg(case
        when node.cause = any ($2::smallint[]) then -1
        when node.ended is not null then node.ended
        when node.map is not null then case when node.map_total is null then 6 else 1 end
        else coalesce(live.state, (select past.state from horai.instance_history past
            where past.id = node.instance_id and past.finished_at >= $3 limit 1), 4)
    end::smallint) as states,
    array_agg(node.run_id) filter (where node.map is not null) as map_runs,
    array_agg(node.map_total) filter (where node.map is not null) as map_totals,
    array_agg(node.map_ended) filter (where node.map is not null) as map_ended,
    array_agg(node.map_failed) filter (where node.map is not null) as map_failed
from horai.workflow_node node
left join horai.instance_live live on node.ended is null and live.id = node.instance_id
where node.run_id = any ($1::bigint[]) and node.is_current
group by node.name;

-- name: node_runs
-- tenant: by workflow
-- A node in the last $3 runs of a workflow that have it. One snapshot: a row that moves is in one of the two tables. A history row is
-- looked for from the creation of its run on, less $4.
select run.id as run_id, run.fire_time, run.phase, node.generation,
    node.cause, node.ended, node.map is not null as is_map, node.map_total, node.map_ended, node.map_failed,
    case when node.map is null then node.instance_id end as instance_id,
    case when node.map is null then coalesce(live.state, past.state) when node.ended is null and node.map_total is not null then 1
        when node.ended is null then 6 end as state,
    coalesce(live.attempt, past.attempt) as attempt,
    coalesce(live.error_code, past.error_code) as error_code,
    coalesce(node.map_started_at, live.claimed_at, past.claimed_at) as claimed_at,
    coalesce(node.map_finished_at, past.finished_at) as finished_at
from (select * from horai.workflow_run where workflow_id = $1 order by fire_time desc, id desc limit $3) run
join horai.workflow_node node on node.run_id = run.id and node.name = $2 and node.is_current
left join horai.instance_live live on live.id = node.instance_id
left join lateral (
    select * from horai.instance_history history
    where history.id = node.instance_id and history.finished_at >= run.created_at - $4::interval limit 1
) past on true
order by run.fire_time desc, run.id desc;
