-- Reconcilers: a source of the business is compared with the instances of a job, again and again.

-- job_id: the job whose runs are the comparisons; its name is the reconciler's, and it is gone with it.
-- target_id: the job whose instances are compared. source: where the business keeps what it wants; source_version counts
-- its changes, and a run that began under another one begins anew.
create table horai.reconciler (
    id bigint generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    job_id bigint not null unique references horai.job,
    target_id bigint not null references horai.job,
    source json not null,
    source_version integer not null default 1,
    created_at timestamptz not null default clock_timestamp()
);
create index reconciler_tenant on horai.reconciler (tenant_id, id);
create index reconciler_target on horai.reconciler (target_id);

-- One per run. attempt: whoever runs it now; an older one writes nothing any more. cursor: where its next page begins.
-- is_read: the source has no further page.
-- live: how many instances it has met (rows of reconcile_seen). surplus: null while, or when, nobody knows.
-- error: what the last attempt broke off with.
create table horai.reconcile_report (
    id bigint generated always as identity primary key,
    reconciler_id bigint not null references horai.reconciler,
    instance_id bigint not null unique,
    attempt integer not null,
    source_version integer not null,
    started_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    cursor text,
    is_read boolean not null default false,
    pages integer not null default 0,
    found bigint not null default 0,
    missing bigint not null default 0,
    created bigint not null default 0,
    left_alone bigint not null default 0,
    faulty bigint not null default 0,
    live bigint not null default 0,
    surplus bigint,
    error text,
    examples json not null default '{}'
);
create index reconcile_report_reconciler on horai.reconcile_report (reconciler_id, id);

-- The live instances that a run under way has met: what is there besides is surplus. Unlogged: it is for one run, and a run
-- that finds fewer than it has counted says that it does not know.
create unlogged table horai.reconcile_seen (
    report_id bigint not null,
    instance_id bigint not null,
    primary key (report_id, instance_id)
);
