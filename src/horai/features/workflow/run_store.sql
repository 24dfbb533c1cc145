-- Runs of workflows. A transaction that decides on a run locks its row, and skips runs that are locked. It reads the states of
-- the nodes in later statements. Releasing an instance also checks that it is BLOCKED, so each instance is released once.

-- name: insert_run
-- tenant: platform
-- The id is that of the instance that starts the run: a second attempt finds the row and inserts nothing.
insert into horai.workflow_run (tenant_id, id, workflow_id, fire_time, version, payload)
select tenant_id, $1, id, $3, $4, $5 from horai.workflow where id = $2
on conflict (id) do nothing returning id;

-- name: make_nodes
-- tenant: by job
-- moves: -> INIT | BLOCKED
-- Inserts an instance for each node of the run $1, with generation $2 and fire time $3. Ready nodes are due, the others
-- wait. Payload: the node's own ($8), else the run's ($9), else the job's. An encrypted job gets that of the run as its own, sealed.
with job as materialized (
    select id, tenant_id, payload, encrypted, case when status = 0 then lane_id else 0 end as lane from horai.job
    where id = any ($5::bigint[]) order by id for key share
), fresh as materialized (
    select nextval('horai.instance_id') as id, node.name, node.job_id, node.is_ready, string_to_array(node.after, ',') as after, node.payload
    from unnest($4::text[], $5::bigint[], $6::boolean[], $7::text[], $8::json[]) as node(name, job_id, is_ready, after, payload)
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload, state)
    select fresh.id, job.id, job.tenant_id, case when fresh.is_ready then job.lane else 0 end, fresh.id % $10, $3, $3, $3,
        greatest($3, clock_timestamp()), -fresh.id, coalesce(fresh.payload, case when not job.encrypted then $9::json end, job.payload), case when fresh.is_ready then 0 else 6 end
    from fresh join job on job.id = fresh.job_id
    returning id, lane, due, state
), noted as (
    insert into horai.workflow_node (tenant_id, run_id, name, generation, job_id, instance_id, after, payload)
    select job.tenant_id, $1, fresh.name, $2, job.id, fresh.id, fresh.after, fresh.payload from fresh join job on job.id = fresh.job_id
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
    run.settled, job.overlap <> 0 or job.after_finish is not null as is_gated
from horai.workflow_run run join horai.workflow on workflow.id = run.workflow_id join horai.job on job.id = workflow.job_id
where run.id = any ($1::bigint[]) and run.finished_at is null
order by run.id for no key update of run skip locked;

-- name: open_runs
-- tenant: by workflow
-- The unfinished runs among $1, locked or not.
select id from horai.workflow_run where id = any ($1::bigint[]) and finished_at is null;

-- name: nodes_of_runs
-- tenant: by workflow
select node.run_id, node.name, node.instance_id, node.after, node.ended, case when job.encrypted then job.name end as sealed_for
from horai.workflow_node node join horai.job on job.id = any (array[node.job_id])
where node.run_id = any ($1::bigint[]) and node.is_current order by node.run_id, node.name;

-- name: live_states
-- tenant: by instance
select id, state from horai.instance_live where id = any ($1::bigint[]);

-- name: final_states
-- tenant: by instance
-- Runs after live_states, for the instances that it did not return. $2: none of them can have ended before this time.
select id, state, error_code from horai.instance_history where id = any ($1::bigint[]) and finished_at >= $2;

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
-- Points a node to the replay of its dead instance.
update horai.workflow_node node set instance_id = replay.id, ended = null
from unnest($1::bigint[], $2::bigint[]) as replay(dead, id) where node.instance_id = replay.dead;

-- name: note_ends
-- tenant: by instance
update horai.workflow_node node set ended = seen.final
from unnest($1::bigint[], $2::smallint[]) as seen(id, final) where node.instance_id = seen.id and node.ended is null;

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
    select live.id, wish.payload, wish.run_id, case when job.status = 0 then job.lane_id else 0 end as lane, clock_timestamp() as at
    from unnest($1::bigint[], $2::json[], $3::bigint[]) as wish(id, payload, run_id)
    join horai.instance_live live on live.id = wish.id and live.state = 6
    join horai.job on job.id = live.job_id
    order by live.id for update of live skip locked for key share of job skip locked
), freed as (
    update horai.instance_live live
    set state = 0, lane = held.lane, due = held.at, execute_time = held.at, payload = coalesce(held.payload, live.payload),
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
-- will be.
update horai.workflow_run run
set phase = seen.phase, finished_at = case when seen.phase in (2, 3) then clock_timestamp() end,
    settled = run.settled or seen.settled or seen.phase <> 0
from unnest($1::bigint[], $2::smallint[], $3::boolean[]) as seen(id, phase, settled)
where run.id = seen.id and (run.phase <> seen.phase or seen.settled and not run.settled);

-- name: give_up_runs
-- tenant: by workflow
update horai.workflow_run set given_up = true where id = any ($1::bigint[]) and finished_at is null and not given_up;

-- name: dead_nodes_of
-- tenant: platform
-- The dead instances that block runs.
select instance_id from horai.workflow_node where run_id = any ($1::bigint[]) and is_current and ended = 4 order by instance_id;

-- name: runs_of
-- tenant: platform
-- The runs of instances that are nodes or that started a run.
select run_id, instance_id from horai.workflow_node where instance_id = any ($1::bigint[]) and is_current
union
select id, id from horai.workflow_run where id = any ($1::bigint[]);

-- name: runs_of_replays
-- tenant: platform
-- Like runs_of, for replays that their node does not point to yet.
select node.run_id from (
    select replay_of from horai.instance_live where id = any ($1::bigint[]) and replay_of is not null
    union all
    select replay_of from horai.instance_history where id = any ($1::bigint[]) and replay_of is not null
) replay
join horai.workflow_node node on node.instance_id = replay.replay_of and node.is_current;

-- name: has_open_runs
-- tenant: platform
-- If no run is unfinished, the workflow stage does not read instances.
select exists (select from horai.workflow_run where finished_at is null) as is_any;

-- name: stuck_runs
-- tenant: platform
-- Runs with an open decision: a node ended, a dead node was replayed, a node waits that must not or need not wait any more, or
-- the instance that started the run was cancelled. $1: after this id; $2: limit; of the shards $3 of $4; or, with $5, only of
-- these runs. Each condition is a scalar subquery, which the planner cannot turn into a scan of whole tables.
select run.id from horai.workflow_run run
where run.id > $1 and run.finished_at is null and ($5::bigint[] is null or run.id = any ($5))
    and ($5 is not null or run.id % $4::bigint = any ($3::bigint[])) and (
    not run.settled and (select true from horai.instance_live live where live.id = run.id) is null or
    (select true from horai.workflow_node node where node.run_id = run.id and node.ended is null and node.is_current
        and (select true from horai.instance_live live where live.id = node.instance_id) is null limit 1)
    or (select true from horai.workflow_node node where node.run_id = run.id and node.ended = 4 and node.is_current and (
        (select true from horai.instance_live live where live.replay_of = node.instance_id limit 1)
        or (select true from horai.instance_history past where past.replay_of = node.instance_id limit 1)) limit 1)
    or (select true from horai.workflow_node node
        cross join lateral (select state from horai.instance_live where id = node.instance_id limit 1) live
        where node.run_id = run.id and node.ended is null and node.is_current and (
            live.state <> 1 and (run.given_up or (select deleted_at is not null from horai.workflow where id = run.workflow_id))
            or live.state = 6 and (select true from horai.workflow_node parent where parent.run_id = run.id and parent.is_current
                and parent.name = any (node.after) and parent.ended is distinct from 2 limit 1) is null) limit 1))
order by run.id limit $2;

-- name: open_runs_of
-- tenant: by workflow
-- A page of the unfinished runs of a workflow.
select id from horai.workflow_run where workflow_id = $1 and finished_at is null and id > $2 order by id limit $3;
