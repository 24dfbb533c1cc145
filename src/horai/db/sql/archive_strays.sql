-- Files of the archive without a record: those that a process is about to write, and those that are to be deleted.

-- name: begin_archive_file
-- tenant: $2
-- Names a file that is about to be written. No row: it is being deleted.
insert into horai.archive_stray (path, tenant_id) values ($1, $2)
on conflict (path) do update set since = clock_timestamp() where not archive_stray.is_doomed
returning path;

-- name: end_archive_file
-- tenant: $2
-- The transaction records the file. No row: another process took this one for dead, and deletes the file.
delete from horai.archive_stray where path = $1 and tenant_id = $2 and not is_doomed returning path;

-- name: doom_replaced_file
-- tenant: $1
-- The file of a day that is replaced by one with another path, $4.
insert into horai.archive_stray (path, tenant_id, is_doomed)
select path, tenant_id, true from horai.archive_file where tenant_id = $1 and table_name = $2 and day = $3 and path <> $4
on conflict (path) do update set is_doomed = true;

-- name: doom_file
-- tenant: $2
update horai.archive_stray set is_doomed = true where path = $1 and tenant_id = $2;

-- name: doom_tenant_files
-- tenant: $1
with gone as (
    delete from horai.archive_file where tenant_id = $1
        and exists (select from horai.tenant where id = $1 and deleting_at is not null) returning path, tenant_id
)
insert into horai.archive_stray (path, tenant_id, is_doomed) select path, tenant_id, true from gone
on conflict (path) do update set is_doomed = true;

-- name: doomed_files
-- tenant: platform
-- Up to $2 files to delete. Names that are older than $1 belong to no process: the file is marked, or, if it has a record, the name is forgotten.
with recorded as (
    delete from horai.archive_stray where not is_doomed and since <= statement_timestamp() - $1::interval and exists (
        select from horai.archive_file file where file.tenant_id = archive_stray.tenant_id and file.path = archive_stray.path)
), late as (
    update horai.archive_stray set is_doomed = true
    where not is_doomed and since <= statement_timestamp() - $1::interval and not exists (
        select from horai.archive_file file where file.tenant_id = archive_stray.tenant_id and file.path = archive_stray.path)
    returning path, tenant_id
)
(select path, tenant_id from late union all select path, tenant_id from horai.archive_stray where is_doomed) limit $2;

-- name: forget_doomed_file
-- tenant: $2
delete from horai.archive_stray where path = $1 and tenant_id = $2 and is_doomed;

-- name: expire_archive_files
-- tenant: platform
-- Up to $5 records of days that ended longer than $1 ago. None while the clock of the database may be wrong: it is more than an hour away from
-- that of the node, $2, or the newest archived day is older than it can be, by $3 and $4. None of a day that the history still has.
with old as materialized (
    select file.id, file.tenant_id from horai.archive_file file
    where file.table_name in ('instance_history', 'attempt', 'event', 'note')
        and file.day < (statement_timestamp() at time zone 'UTC' - $1::interval)::date
        and abs(extract(epoch from statement_timestamp() - $2::timestamptz)) <= 3600
        and (select max(day) from horai.archive_partition where archived_at is not null)
            >= (statement_timestamp() at time zone 'UTC' - $3::interval - $4::interval)::date
        and to_regclass('horai.' || file.table_name || to_char(file.day, '_YYYYMMDD')) is null
    order by file.day, file.id limit $5
), gone as (
    delete from horai.archive_file file using old where file.id = old.id and file.tenant_id = old.tenant_id
    returning file.path, file.tenant_id, file.day
), doomed as (
    insert into horai.archive_stray (path, tenant_id, is_doomed) select path, tenant_id, true from gone
    on conflict (path) do update set is_doomed = true
)
select count(*) as files, max(day) as day from gone;

-- name: forget_archived_days
-- tenant: platform
-- Days up to $1 that have neither files nor rows.
delete from horai.archive_partition part where part.day <= $1
    and not exists (select from horai.archive_file file where file.table_name = part.table_name and file.day = part.day)
    and to_regclass('horai.' || part.table_name || to_char(part.day, '_YYYYMMDD')) is null;
