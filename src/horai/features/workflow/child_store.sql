-- Nodes of runs that started a run of another workflow. A transaction that changes them has locked the row of the parent run. The run of a
-- node has the id of the instance of the node.

-- name: child_phases
-- tenant: by instance
-- The runs that these instances have started, and whether they are given up.
select id, phase, given_up from horai.workflow_run where id = any ($1::bigint[]);

-- name: levels_above
-- tenant: platform
-- How many runs are above the run that the instance $1 starts, at most $2.
with recursive above(run_id, level) as (
    select node.run_id, 1 from horai.workflow_node node where node.instance_id = $1
    union all
    select node.run_id, above.level + 1 from above join horai.workflow_node node on node.instance_id = above.run_id
    where above.level < $2
)
select coalesce(max(level), 0)::integer from above;

-- name: start_again
-- tenant: by instance
-- moves: -> INIT
-- Starts another run for a node whose run $1 failed, after the attempt $2: an instance with the payload of the one before, due after $3. The
-- statement takes effect once: it finds the node only with the failed instance and its attempt. $4: number of shards; $5: the failed instance
-- cannot have ended before this time.
with failed as materialized (
    select node.run_id, node.name, node.generation, past.fire_time, past.payload, job.id as job_id, job.tenant_id,
        case when job.status = 0 then job.lane_id else 0 end as lane, nextval('horai.instance_id') as id, clock_timestamp() + $3::interval as at
    from horai.workflow_node node
    join horai.instance_history past on past.id = node.instance_id and past.finished_at >= $5 and past.state = 4
    join horai.job on job.id = past.job_id
    where node.instance_id = $1 and node.is_current and node.child_attempt = $2 and node.ended is null
    limit 1 for key share of job
), noted as (
    update horai.workflow_node node set instance_id = failed.id, child_attempt = node.child_attempt + 1 from failed
    where node.run_id = failed.run_id and node.name = failed.name and node.generation = failed.generation
    returning node.instance_id
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
    select failed.id, job_id, tenant_id, lane, failed.id % $4, fire_time, at, fire_time, at, -failed.id, payload
    from failed join noted on noted.instance_id = failed.id
    returning id, lane, due
)
select id, lane, due from made;

-- name: reopen_children
-- tenant: by instance
-- The runs that these instances started go on, although their instances are dead.
update horai.workflow_node set ended = null, cause = null where instance_id = any ($1::bigint[]) and is_current and ended = 4;

-- name: note_child_results
-- tenant: by instance
-- Records the results of nodes whose runs succeeded: the id of the run, and the results of its last nodes, unless they exceed $2 bytes
-- together. Values of encrypted jobs are left out. $3: no node of these runs ended before this time.
update horai.workflow_node node set child_result = json_build_object('run', node.instance_id::text, 'results', case when made.size <= $2 then made.results end)
from unnest($1::bigint[]) as child(run_id) cross join lateral (
    select coalesce(json_object_agg(one.name, one.result order by one.name), '{}'::json) as results,
        coalesce(sum(octet_length(one.result::text)), 0) as size
    from (
        select leaf.name, coalesce(leaf.map_result, leaf.child_result, (
            select past.result from horai.instance_history past
            where past.id = leaf.instance_id and past.finished_at >= $3 and past.state = 2 limit 1)) as result
        from horai.workflow_node leaf join horai.job on job.id = leaf.job_id
        where leaf.run_id = child.run_id and leaf.is_current and leaf.ended = 2 and not job.encrypted
            and not exists (select from horai.workflow_node below
                where below.run_id = leaf.run_id and below.is_current and leaf.name = any (below.after))
    ) one
) made
where node.instance_id = child.run_id and node.is_current and node.child is not null;

-- name: child_results
-- tenant: by instance
-- The results of nodes that started runs, by the ids of their instances.
select instance_id, child_result as result from horai.workflow_node where instance_id = any ($1::bigint[]) and child_result is not null;

-- name: parent_of_run
-- tenant: by workflow
-- The node that waits for a run, or that a rerun has replaced; none if the node has started another run since.
select parent.id as run_id, workflow.name as workflow, node.name as node from horai.workflow_node node
join horai.workflow_run parent on parent.id = node.run_id join horai.workflow on workflow.id = parent.workflow_id
where node.instance_id = $1;
