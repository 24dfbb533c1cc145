-- Workflows: jobs in the order of a graph, for one fire time (docs/guides/workflows.md).

-- job_id: the job that carries its schedule; each instance of that starts a run. nodes: as they were written, with the ids
-- of their jobs. A new version is for the runs to come.
create table horai.workflow (
    id bigint generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    name text collate "C" not null,
    job_id bigint not null unique references horai.job,
    nodes json not null,
    version bigint not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    deleted_at timestamptz
);
create unique index workflow_name on horai.workflow (tenant_id, name) where deleted_at is null;

-- Which jobs are in a workflow: their runs may have something to release, and they cannot be deleted.
create table horai.workflow_job (
    job_id bigint not null references horai.job,
    workflow_id bigint not null references horai.workflow,
    primary key (job_id, workflow_id)
);
create index workflow_job_workflow on horai.workflow_job (workflow_id);

-- A run has the id of the instance that started it: it is started once. phase: 0 RUNNING, 1 BLOCKED (nothing is under way,
-- and something died), 2 SUCCESS, 3 CANCELLED. generation counts its reruns. given_up: nothing that does not run shall run.
create table horai.workflow_run (
    id bigint primary key,
    workflow_id bigint not null references horai.workflow,
    fire_time timestamptz not null,
    phase smallint not null default 0 check (phase between 0 and 3),
    generation integer not null default 0,
    version bigint not null,
    given_up boolean not null default false,
    payload json,
    created_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    constraint workflow_run_finished_when_final check ((phase in (2, 3)) = (finished_at is not null))
) with (fillfactor = 80);
create index workflow_run_list on horai.workflow_run (workflow_id, fire_time, id);
create index workflow_run_phase on horai.workflow_run (workflow_id, phase, fire_time, id);
create index workflow_run_open on horai.workflow_run (id) where finished_at is null;
create index workflow_run_open_of on horai.workflow_run (workflow_id, id) where finished_at is null;

-- Which instance is which node of a run. ended: the final state its instance was seen in; null while nobody has. A dead one
-- that is replayed is followed by its replay. A rerun makes new rows; those before are not current any more.
create table horai.workflow_node (
    run_id bigint not null references horai.workflow_run,
    name text collate "C" not null,
    generation integer not null default 0,
    is_current boolean not null default true,
    job_id bigint not null,
    instance_id bigint not null unique,
    after text[] not null,
    ended smallint check (ended in (2, 4, 5)),
    payload json,
    primary key (run_id, name, generation)
) with (fillfactor = 80);
create index workflow_node_open on horai.workflow_node (run_id) where ended is null and is_current;
create index workflow_node_dead on horai.workflow_node (run_id) where ended = 4 and is_current;

-- What follows a dead instance is found by what it replays.
create index instance_live_replay on horai.instance_live (replay_of) where replay_of is not null;
create index instance_history_replay on horai.instance_history (replay_of) where replay_of is not null;
