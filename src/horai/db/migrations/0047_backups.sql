-- Backups (docs/guides/backup.md): those of the embedded database that were made or given up, the last 100.

-- every: the interval of the schedule; null for a backup by hand. error: why it was given up; null if it is complete.
create table horai.backup_run (
    id bigint generated always as identity primary key,
    started_at timestamptz not null,
    finished_at timestamptz not null default clock_timestamp(),
    directory text not null,
    path text,
    size bigint,
    lsn text,
    violations integer,
    every interval,
    error text,
    check ((path is null) = (error is not null))
);
revoke all on horai.backup_run from public;

-- origin: the letter of another cluster that `horai import` has brought; it comes once.
alter table horai.dead_letter add column origin text collate "C";
