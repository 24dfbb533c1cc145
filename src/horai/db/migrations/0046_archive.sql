-- The archive (docs/guides/archive.md): closed days of history as Parquet files, one for each tenant, table and day.

-- A file that was written, read again and compared with the rows. path: below the archive directory. checksum: the sum of the digests of
-- its rows. from_time and to_time: the first and the last fire time, of instances only.
create table horai.archive_file (
    id bigint generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    table_name text collate "C" not null check (table_name in ('instance_history', 'attempt', 'event', 'note')),
    day date not null,
    path text not null,
    rows bigint not null,
    checksum text not null,
    bytes bigint not null,
    sha256 text not null,
    from_time timestamptz,
    to_time timestamptz,
    archived_at timestamptz not null default clock_timestamp(),
    unique (tenant_id, table_name, day)
);
create index archive_file_day on horai.archive_file (table_name, day);

-- A closed day of a table. archived_at: every tenant with rows in it has its file. failing_since: the first of the tries that failed since;
-- failed_at and error: the last one.
create table horai.archive_partition (
    table_name text collate "C" not null check (table_name in ('instance_history', 'attempt', 'event', 'note')),
    day date not null,
    archived_at timestamptz,
    tries integer not null default 0,
    failing_since timestamptz,
    failed_at timestamptz,
    error text,
    primary key (table_name, day)
);
create index archive_partition_failed on horai.archive_partition (failed_at) where failed_at is not null;

-- Instances that an administrator has restored from the archive, to be read with SQL. No decision of Horai reads them.
create table horai.restored_instance (
    tenant_id integer not null references horai.tenant,
    archived_day date not null,
    id bigint not null,
    job_id bigint not null,
    job text not null,
    key text,
    final_state text not null,
    reason text,
    fire_time timestamptz not null,
    execute_time timestamptz not null,
    created_at timestamptz not null,
    claimed_at timestamptz,
    finished_at timestamptz not null,
    attempt integer not null,
    retry_count integer not null,
    fence bigint not null,
    queue text,
    priority text,
    node text,
    version bigint,
    supersedes bigint,
    replay_of bigint,
    error_code text,
    error_msg text,
    payload json,
    result json,
    encrypted boolean not null,
    restored_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, archived_day, fire_time, id)
);
revoke all on horai.archive_file, horai.archive_partition, horai.restored_instance from public;
