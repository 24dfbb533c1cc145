-- Backfills: slots of a job that are made again, or for the first time, over a range of the past.

-- mode: 0 missing, 1 failed, 2 all. status: 0 RUNNING, 1 PAUSED, 2 DONE, 3 CANCELLED.
-- spec: the job's schedule when it was asked for; a job that is changed later does not change which slots are meant.
-- next_time: the first slot that nobody has looked at; null when all are done. until_time: the first instant behind the last.
-- slots: how many the range has. total: how many of them were to be run when it was asked for. made and skipped: how many of
-- those behind next_time were; succeeded, failed and cancelled: what became of those that have ended.
-- next_start: with a rate, when the next one may start. pace: how many end in a second, as of looked_at.
-- finished_at: nothing more is made, and nothing that was made is under way.
create table horai.backfill (
    id bigint generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    job_id bigint not null references horai.job,
    spec json not null,
    from_time timestamptz not null,
    to_time timestamptz not null,
    next_time timestamptz,
    until_time timestamptz not null,
    mode smallint not null check (mode between 0 and 2),
    status smallint not null default 0 check (status between 0 and 3),
    max_concurrency integer not null check (max_concurrency between 1 and 10000),
    rate_count integer check (rate_count between 1 and 1000000),
    rate_per interval,
    next_start timestamptz,
    slots bigint not null,
    total bigint not null,
    made bigint not null default 0,
    skipped bigint not null default 0,
    succeeded bigint not null default 0,
    failed bigint not null default 0,
    cancelled bigint not null default 0,
    pace double precision,
    looked_at timestamptz not null,
    note text,
    request_key text collate "C",
    request_hash bytea,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    finished_at timestamptz,
    constraint backfill_rate_is_whole check ((rate_count is null) = (rate_per is null)),
    constraint backfill_request_is_whole check ((request_key is null) = (request_hash is null)),
    constraint backfill_done_is_finished check (status <> 2 or finished_at is not null)
) with (fillfactor = 50);
create index backfill_open on horai.backfill (id) where finished_at is null;
create index backfill_open_job on horai.backfill (job_id) where finished_at is null;
create index backfill_tenant on horai.backfill (tenant_id, id);
create unique index backfill_request on horai.backfill (tenant_id, job_id, request_key) where request_key is not null;

-- The instances that a backfill has made and that have not ended, as far as it knows: never more than its max_concurrency.
create table horai.backfill_instance (
    instance_id bigint primary key,
    backfill_id bigint not null references horai.backfill
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index backfill_instance_backfill on horai.backfill_instance (backfill_id);
