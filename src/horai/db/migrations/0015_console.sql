-- What a console asks for: lists by what is rare, and how the last hours went, minute by minute.

-- Most of history has succeeded: the rest is found without passing over it, and a success is not slowed by it.
create index instance_history_rest on horai.instance_history (tenant_id, fire_time, id) where state <> 2;
-- What has failed and is tried again; no claim changes retry_count.
create index instance_live_retried on horai.instance_live (tenant_id, fire_time, id) where retry_count > 0;
create index job_paused on horai.job (tenant_id, id) where status = 1 and deleted_at is null;

-- What a process did in a minute of the database's clock: written while it lasts, again and again, as a whole.
-- node: the incarnation that it had when the minute began. delays: pairs of class and count (core/vitals.py).
create table horai.minute (
    at timestamptz not null,
    node bigint not null,
    started bigint not null,
    succeeded bigint not null,
    failed bigint not null,
    dead bigint not null,
    delays json not null,
    primary key (at, node)
) with (fillfactor = 50);
