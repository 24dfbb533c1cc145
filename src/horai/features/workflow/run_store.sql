-- Runs of workflows. A transaction that decides on a run locks its row, and skips runs that are locked. It reads the states of
-- the nodes in later statements. Releasing an instance also checks that it is BLOCKED, so each instance is released once.

-- name: insert_run
-- tenant: platform
-- The id is that of the instance that starts the run: a second attempt finds the row and inserts nothing.
insert into horai.workflow_run (tenant_id, id, workflow_id, fire_time, version, payload, interval_start)
select tenant_id, $1, id, $3, $4, $5, $6 from horai.workflow where id = $2
on conflict (id) do nothing returning id;

-- name: make_nodes
-- tenant: by job
-- moves: -> INIT | BLOCKED
-- Inserts an instance for each node of the run $1, with generation $2 and fire time $3. Ready nodes are due now, the others
-- wait by their trigger rules ($11); $12: retry policies of their own; $13: settings of maps, which get no instance; $14: the assets that
-- they produce, joined by blanks; $15: settings of nodes that start runs of other workflows; $16: those of sensors, and $17 how long
-- they wait. Payload: the node's own ($8), else the run's ($9), else the job's. An encrypted job gets that of the
-- run as its own, sealed.
with job as materialized (
    select id, tenant_id, payload, encrypted, case when status = 0 then lane_id else 0 end as lane from horai.job
    where id = any ($5::bigint[]) order by id for key share
), fresh as materialized (
    select nextval('horai.instance_id') as id, node.name, node.job_id, node.is_ready, string_to_array(node.after, ',') as after, node.payload, node.rule, node.retry, node.map, string_to_array(node.produces, ' ') as produces, node.child, node.sensor, node.lasts
    from unnest($4::text[], $5::bigint[], $6::boolean[], $7::text[], $8::json[], $11::smallint[], $12::json[], $13::json[], $14::text[], $15::json[], $16::json[], $17::interval[])
        as node(name, job_id, is_ready, after, payload, rule, retry, map, produces, child, sensor, lasts)
), start as materialized (
    select greatest($3, clock_timestamp()) as at
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload, expires_at, state)
    select fresh.id, job.id, job.tenant_id, case when fresh.is_ready then job.lane else 0 end, fresh.id % $10, $3, start.at, $3,
        start.at, -fresh.id, coalesce(fresh.payload, case when not job.encrypted then $9::json end, job.payload),
        case when fresh.is_ready then start.at + fresh.lasts end, case when fresh.is_ready then 0 else 6 end
    from fresh join job on job.id = fresh.job_id cross join start where fresh.map is null
    returning id, lane, due, state
), noted as (
    insert into horai.workflow_node (tenant_id, run_id, name, generation, job_id, instance_id, after, payload, trigger_rule, retry, map, produces, child, child_attempt, sensor)
    select job.tenant_id, $1, fresh.name, $2, job.id, fresh.id, fresh.after, fresh.payload, fresh.rule, fresh.retry, fresh.map, fresh.produces,
        fresh.child, case when fresh.child is not null then 1 end, fresh.sensor from fresh join job on job.id = fresh.job_id
)
select id, lane, due from made where state = 0;

-- name: hand_over
-- tenant: platform
-- Gives the claim $1..$4 to its run: the instance stays RUNNING and no node holds it, so no node has to return it.
update horai.instance_live set node = 0, updated_at = clock_timestamp()
where id = $1 and state = 1 and attempt = $2 and fence = $3 and node = $4 returning id;

-- name: phase_of_run
-- tenant: platform
-- Waits for a transaction that decides on the run. Either the instance is handed over before that transaction reads it, or
-- this statement returns the new state.
select phase from horai.workflow_run where id = $1 for share;

-- name: waiting_starters
-- tenant: by instance
-- The instances that started these runs and wait for their end.
select id, job_id, attempt, fence, node, retry_count, claimed_at from horai.instance_live
where id = any ($1::bigint[]) and state = 1 and node = 0 order by id;

-- name: lock_runs
-- tenant: by workflow
select run.id, run.created_at, workflow.tenant_id, workflow.job_id, workflow.name, run.given_up, workflow.deleted_at is not null as is_deleted,
    run.settled, job.overlap <> 0 or job.after_finish is not null as is_gated, run.fire_time,
    exists (select from horai.asset_use made where made.job_id = job.id and made.role = 0 and made.node = '') as is_producer,
    run.phase, exists (select from horai.workflow_node outer_node where outer_node.instance_id = run.id and outer_node.is_current) as is_child
from horai.workflow_run run join horai.workflow on workflow.id = run.workflow_id join horai.job on job.id = workflow.job_id
where run.id = any ($1::bigint[]) and run.finished_at is null
order by run.id for no key update of run skip locked;

-- name: open_runs
-- tenant: by workflow
-- The unfinished runs among $1, locked or not.
select id from horai.workflow_run where id = any ($1::bigint[]) and finished_at is null;

-- name: nodes_of_runs
-- tenant: by workflow
select node.run_id, node.name, node.instance_id, node.after, node.ended, case when job.encrypted then job.name end as sealed_for,
    node.trigger_rule, node.cause, node.chosen, node.generation, node.job_id, node.map, node.map_total, node.map_made, node.map_ended, node.map_failed,
    node.produces is not null as is_producer, node.child, node.child_attempt, case when node.child is not null then node.retry end as retry, node.sensor
from horai.workflow_node node join horai.job on job.id = any (array[node.job_id])
where node.run_id = any ($1::bigint[]) and node.is_current order by node.run_id, node.name;

-- name: live_states
-- tenant: by instance
select id, state from horai.instance_live where id = any ($1::bigint[]);

-- name: final_states
-- tenant: by instance
-- Runs after live_states, for the instances that it did not return. $2: none of them can have ended before this time. The result of a
-- success is read only if it directs the run (core/node_results.py), and for $3, whose results are sealed.
select id, state, error_code, reason, case when state = 2 and (id = any ($3::bigint[]) or result::text ~ '^\s*\{\s*"horai:(skip|branch)"') then result end as result
from horai.instance_history where id = any ($1::bigint[]) and finished_at >= $2;

-- name: replays_of
-- tenant: by instance
-- The replays of dead instances.
select replay_of, max(id) as id from (
    select replay_of, id from horai.instance_live where replay_of = any ($1::bigint[])
    union all
    select replay_of, id from horai.instance_history where replay_of = any ($1::bigint[])
) replay group by replay_of;

-- name: follow_replays
-- tenant: by instance
-- Points a node to the replay of its dead instance. The replay of a sensor waits for $3 from its next question on.
with followed as (
    update horai.workflow_node node set instance_id = replay.id, ended = null, cause = null, chosen = null
    from unnest($1::bigint[], $2::bigint[], $3::interval[]) as replay(dead, id, lasts) where node.instance_id = replay.dead
    returning replay.id, replay.lasts
)
update horai.instance_live live set expires_at = greatest(live.due, clock_timestamp()) + followed.lasts
from followed where live.id = any (array[followed.id]) and followed.lasts is not null and live.expires_at is null and live.state in (0, 1, 3);

-- name: note_ends
-- tenant: by instance
-- $3: causes; $4: the names of chosen nodes, joined by commas. A node that has ended keeps its first end.
update horai.workflow_node node set ended = seen.final, cause = seen.cause, chosen = string_to_array(seen.chosen, ',')
from unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::text[]) as seen(id, final, cause, chosen)
where node.instance_id = seen.id and node.ended is null;

-- name: update_node_assets
-- tenant: by instance
-- Updates the assets that these nodes produce, in the transaction that records their successes. The result is the metadata of the update, if
-- it has at most $2 bytes; that of an encrypted job is not. $3: none of the nodes ended before this time.
insert into horai.asset_update (tenant_id, asset_id, job_id, instance_id, run_id, node, interval_start, interval_end, metadata)
select node.tenant_id, asset.id, workflow.job_id, node.instance_id, run.id, node.name, run.interval_start,
    case when run.interval_start is not null then run.fire_time end,
    case when not job.encrypted then (select made.result from (
        select node.map_result as result where node.map is not null
        union all
        select done.result from horai.instance_history done where node.map is null and done.id = node.instance_id and done.finished_at >= $3
    ) made where octet_length(made.result::text) <= $2 limit 1) end
from horai.workflow_node node cross join lateral unnest(node.produces) as produced(name)
join horai.workflow_run run on run.id = node.run_id join horai.workflow on workflow.id = run.workflow_id
join horai.job on job.id = node.job_id join horai.asset on asset.tenant_id = node.tenant_id and asset.name = produced.name
where node.instance_id = any ($1::bigint[]) and node.is_current order by node.instance_id, asset.id
on conflict (asset_id, instance_id) where instance_id is not null do nothing;

-- name: update_run_assets
-- tenant: by workflow
-- Updates the assets that workflows produce. A run has the id of the instance that started it, which may be DEAD: the run was blocked then.
insert into horai.asset_update (tenant_id, asset_id, job_id, instance_id, run_id, interval_start, interval_end)
select run.tenant_id, made.asset_id, made.job_id, run.id, run.id, run.interval_start, case when run.interval_start is not null then run.fire_time end
from horai.workflow_run run join horai.workflow on workflow.id = run.workflow_id
join horai.asset_use made on made.job_id = workflow.job_id and made.role = 0 and made.node = ''
where run.id = any ($1::bigint[]) order by run.id, made.asset_id
on conflict (asset_id, instance_id) where instance_id is not null do nothing;

-- name: results_of
-- tenant: by instance
-- The results of the parents of a node that are small enough to pass on: at most $3 bytes.
select id, result from horai.instance_history
where id = any ($1::bigint[]) and finished_at >= $2 and result is not null and octet_length(result::text) <= $3;

-- name: blocked_payloads
-- tenant: by instance
select id, payload from horai.instance_live where id = any ($1::bigint[]) and state = 6;

-- name: unblock
-- tenant: by instance
-- moves: BLOCKED -> INIT
-- The parents are done: the instance is due now, in the lane of its job. The lock on the job orders this against a pause,
-- which either parks the row later or is seen here. Rows that another transaction holds are left for the next step.
with held as materialized (
    select live.id, wish.payload, wish.run_id, wish.lasts, case when job.status = 0 then job.lane_id else 0 end as lane, clock_timestamp() as at
    from unnest($1::bigint[], $2::bigint[], $3::json[], $4::interval[]) as wish(id, run_id, payload, lasts)
    join horai.instance_live live on live.id = wish.id and live.state = 6
    join horai.job on job.id = live.job_id
    order by live.id for update of live skip locked for key share of job skip locked
), freed as (
    update horai.instance_live live
    set state = 0, lane = held.lane, due = held.at, execute_time = held.at, payload = coalesce(held.payload, live.payload), expires_at = held.at + held.lasts,
        events = live.events + 1, updated_at = clock_timestamp()
    from held where live.id = held.id
    returning live.*, held.run_id
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events, 'INSTANCE_UNBLOCKED',
        json_build_object('idemKey', horai.idem_key(job_id, born_for, slot), 'run', run_id::text) from freed
)
select id, lane, due from freed;

-- name: tell_blocked
-- tenant: $1
-- Nodes died: the nodes that wait for them stay BLOCKED until the dead ones are replayed.
insert into horai.event (tenant_id, job_id, instance_id, kind, data)
select tenant_id, job_id, instance_id, 'WORKFLOW_BLOCKED', data
from unnest($1::integer[], $2::bigint[], $3::bigint[], $4::json[]) as dead(tenant_id, job_id, instance_id, data);

-- name: set_phases
-- tenant: by workflow
-- $3: true if the instance that started the run has ended. Once a run is over or blocked, that instance has been ended or
-- will be. $4: true if the decision could not be written completely.
update horai.workflow_run run
set phase = seen.phase, finished_at = case when seen.phase in (2, 3) then clock_timestamp() end,
    settled = run.settled or seen.settled or seen.phase <> 0, undecided = seen.undecided
from unnest($1::bigint[], $2::smallint[], $3::boolean[], $4::boolean[]) as seen(id, phase, settled, undecided)
where run.id = seen.id and (run.phase <> seen.phase or seen.settled and not run.settled or run.undecided <> seen.undecided);

-- name: give_up_runs
-- tenant: by workflow
update horai.workflow_run set given_up = true where id = any ($1::bigint[]) and finished_at is null and not given_up;

-- name: dead_nodes_of
-- tenant: by workflow
-- The dead instances that block runs: nodes, and items of maps.
select instance_id from horai.workflow_node where run_id = any ($1::bigint[]) and is_current and ended = 4
union all
select instance_id from horai.workflow_item where run_id = any ($1::bigint[]) and ended = 4
order by instance_id;

-- name: runs_of
-- tenant: platform
-- The runs of instances that are nodes or items, or that started a run.
select run_id, instance_id from horai.workflow_node where instance_id = any ($1::bigint[]) and is_current
union
select run_id, instance_id from horai.workflow_item where instance_id = any ($1::bigint[])
union
select id, id from horai.workflow_run where id = any ($1::bigint[]);

-- name: runs_of_replays
-- tenant: platform
-- Like runs_of, for replays that their node or item does not point to yet.
with replay as materialized (
    select replay_of from horai.instance_live where id = any ($1::bigint[]) and replay_of is not null
    union all
    select replay_of from horai.instance_history where id = any ($1::bigint[]) and replay_of is not null
)
select node.run_id from replay join horai.workflow_node node on node.instance_id = any (array[replay.replay_of]) and node.is_current
union all
select item.run_id from replay join horai.workflow_item item on item.instance_id = any (array[replay.replay_of]);

-- name: has_open_runs
-- tenant: platform
-- If no run is unfinished, the workflow stage does not read instances.
select exists (select from horai.workflow_run where finished_at is null) as is_any;

-- name: stuck_runs
-- tenant: platform
-- Runs with an open decision: a node or an item ended, a dead one was replayed, a node waits that must not or need not wait any more, the
-- instance that started the run was cancelled, a run that a node started goes on or has to be given up, or a decision could not be written completely. $1: after this id; $2: limit; of the shards $3 of $4; or, with $5, only of
-- these runs. Each condition is a scalar subquery, which the planner cannot turn into a scan of whole tables.
select run.id from horai.workflow_run run
where run.id > $1 and run.finished_at is null and ($5::bigint[] is null or run.id = any ($5))
    and ($5 is not null or run.id % $4::bigint = any ($3::bigint[])) and (
    run.undecided or not run.settled and (select true from horai.instance_live live where live.id = run.id) is null or
    (select true from horai.workflow_node node where node.run_id = run.id and node.ended is null and node.is_current and node.map is null
        and (select true from horai.instance_live live where live.id = node.instance_id) is null limit 1)
    or (select true from horai.workflow_node node where node.run_id = run.id and node.is_current and node.map is not null and (
        node.ended is null and (node.cause is not null or run.given_up or (select deleted_at is not null from horai.workflow where id = run.workflow_id))
        or node.ended is null and node.map_total is null and (select true from horai.workflow_node parent where parent.run_id = run.id
            and parent.is_current and parent.name = any (node.after) and parent.ended is distinct from 2 limit 1) is null
        or node.ended is null and node.map_total is not null and (node.map_made = node.map_ended or (
            select true from horai.workflow_item item where item.run_id = run.id and item.name = node.name and item.generation = node.generation
                and item.ended is null and (select true from horai.instance_live live where live.id = item.instance_id) is null limit 1))
        or node.ended = 4 and (select true from horai.workflow_item item where item.run_id = run.id and item.name = node.name
            and item.generation = node.generation and item.ended = 4 and (
                (select true from horai.instance_live live where live.replay_of = item.instance_id limit 1)
                or (select true from horai.instance_history past where past.replay_of = item.instance_id limit 1)) limit 1)) limit 1)
    or (select true from horai.workflow_node node join horai.workflow_run child on child.id = node.instance_id and child.phase <> 1
        where node.run_id = run.id and node.ended = 4 and node.is_current and node.child is not null limit 1)
    or (select true from horai.workflow_node node where node.run_id = run.id and node.ended = 4 and node.is_current and (
        (select true from horai.instance_live live where live.replay_of = node.instance_id limit 1)
        or (select true from horai.instance_history past where past.replay_of = node.instance_id limit 1)) limit 1)
    or (select true from horai.workflow_node node
        cross join lateral (select state from horai.instance_live where id = node.instance_id limit 1) live
        where node.run_id = run.id and node.ended is null and node.is_current and (
            (live.state <> 1 or node.child is not null and (select not child.given_up from horai.workflow_run child where child.id = node.instance_id))
                and (run.given_up or (select deleted_at is not null from horai.workflow where id = run.workflow_id))
            or live.state = 6 and (select true from horai.workflow_node parent where parent.run_id = run.id and parent.is_current
                and parent.name = any (node.after) and parent.ended is distinct from 2 limit 1) is null) limit 1))
order by run.id limit $2;

-- name: open_runs_of
-- tenant: by workflow
-- A page of the unfinished runs of a workflow.
select id from horai.workflow_run where workflow_id = $1 and finished_at is null and id > $2 order by id limit $3;
