-- Files of the archive without a record (docs/guides/archive.md): each file that a process is about to write is named here first, and each
-- file that is to be deleted until it is. So the database names every file that can exist. is_doomed: it is to be deleted, and no process
-- may record it any more.
create table horai.archive_stray (
    path text collate "C" primary key,
    tenant_id integer not null references horai.tenant,
    since timestamptz not null default clock_timestamp(),
    is_doomed boolean not null default false
);
create index archive_stray_tenant on horai.archive_stray (tenant_id);
revoke all on horai.archive_stray from public;

-- The bytes of a day's files when it was archived.
alter table horai.archive_partition add column bytes bigint;
