-- The archive: closed days of history, the files that hold them, and the rows that a file is made of.
--
-- An export returns the rows of one day as they are written to a CSV file: times in microseconds since 1970, JSON as it is stored. `digest` is
-- the MD5 of all other columns but the tenant, in their order, as text, with the character 31 between them and `\N` for null.
-- operations/archive_tables.py has the same columns with their Parquet types.

-- name: export_instance_history
-- tenant: platform
select cells.*, md5(array_to_string(array[
    id::text, job_id::text, job, key, state, reason, fire_time::text, execute_time::text, born_for::text, slot::text, created_at::text,
    claimed_at::text, finished_at::text, attempt::text, retry_count::text, events::text, fence::text, lane::text, queue, priority, node::text,
    node_name, version::text, supersedes::text, replay_of::text, error_code, error_msg, payload, result, encrypted::text
], chr(31), '\N')) as digest
from (
    select past.tenant_id, past.id, past.job_id, coalesce(job.name, past.job_id::text) as job, past.key, horai.state_name(past.state) as state,
        (array['USER', 'SUPERSEDED', 'OVERLAP', 'PARENT', 'JOB_DELETED', 'SKIPPED', 'EXPIRED'])[past.reason] as reason,
        (extract(epoch from past.fire_time) * 1000000)::bigint as fire_time,
        (extract(epoch from past.execute_time) * 1000000)::bigint as execute_time,
        (extract(epoch from past.born_for) * 1000000)::bigint as born_for, past.slot,
        (extract(epoch from past.created_at) * 1000000)::bigint as created_at,
        (extract(epoch from past.claimed_at) * 1000000)::bigint as claimed_at,
        (extract(epoch from past.finished_at) * 1000000)::bigint as finished_at,
        past.attempt, past.retry_count, past.events, past.fence, past.lane, lane.queue,
        (array['core', 'high', 'normal', 'low'])[lane.priority + 1] as priority, past.node, node.name as node_name, past.version, past.supersedes,
        past.replay_of, past.error_code, past.error_msg, past.payload::text as payload, past.result::text as result,
        coalesce(job.encrypted, false) as encrypted
    from horai.instance_history past
    left join horai.job on job.id = past.job_id
    left join horai.lane on lane.id = case when past.lane = 0 then coalesce(past.own_lane, job.lane_id) else past.lane end
    left join horai.node on node.incarnation = past.node
    where past.finished_at >= $1::timestamptz and past.finished_at < $2::timestamptz
) cells;

-- name: export_attempt
-- tenant: platform
select cells.*, md5(array_to_string(array[
    instance_id::text, job_id::text, attempt::text, fence::text, node::text, started_at::text, finished_at::text, late::text, outcome,
    error_code, error_msg
], chr(31), '\N')) as digest
from (
    select tenant_id, instance_id, job_id, attempt, fence, node, (extract(epoch from started_at) * 1000000)::bigint as started_at,
        (extract(epoch from finished_at) * 1000000)::bigint as finished_at, late, outcome, error_code, error_msg
    from horai.attempt where finished_at >= $1::timestamptz and finished_at < $2::timestamptz
) cells;

-- name: export_event
-- tenant: platform
select cells.*, md5(array_to_string(array[
    id::text, job_id::text, instance_id::text, seq::text, at::text, kind, data
], chr(31), '\N')) as digest
from (
    select tenant_id, id, job_id, instance_id, seq, (extract(epoch from at) * 1000000)::bigint as at, kind, data::text as data
    from horai.event where at >= $1::timestamptz and at < $2::timestamptz
) cells;

-- name: export_note
-- tenant: platform
-- The progress enters the digest in billionths: two programs write a floating-point number as different text.
select cells.*, md5(array_to_string(array[
    instance_id::text, fence::text, n::text, at::text, node::text, attempt::text, floor(progress * 1000000000)::bigint::text, message
], chr(31), '\N')) as digest
from (
    select tenant_id, instance_id, fence, n, (extract(epoch from at) * 1000000)::bigint as at, node, attempt, progress, message
    from horai.note where at >= $1::timestamptz and at < $2::timestamptz
) cells;

-- name: count_instance_history_day
-- tenant: platform
select tenant_id, count(*) as rows from horai.instance_history where finished_at >= $1::timestamptz and finished_at < $2::timestamptz group by tenant_id;

-- name: count_attempt_day
-- tenant: platform
select tenant_id, count(*) as rows from horai.attempt where finished_at >= $1::timestamptz and finished_at < $2::timestamptz group by tenant_id;

-- name: count_event_day
-- tenant: platform
select tenant_id, count(*) as rows from horai.event where at >= $1::timestamptz and at < $2::timestamptz group by tenant_id;

-- name: count_note_day
-- tenant: platform
select tenant_id, count(*) as rows from horai.note where at >= $1::timestamptz and at < $2::timestamptz group by tenant_id;

-- name: partitions_to_archive
-- tenant: platform
-- Partitions of days that ended at least $1 ago and are not archived, oldest first. A day that failed waits for $2. A tenant or a job that
-- keeps history shorter is not held up: all days are archived as early as its rows may go.
select part.table_name, part.day from (
    select parent.relname::text as table_name, to_date(right(leaf.relname, 8), 'YYYYMMDD') as day
    from pg_inherits
    join pg_class parent on parent.oid = pg_inherits.inhparent and parent.relnamespace = 'horai'::regnamespace
    join pg_class leaf on leaf.oid = pg_inherits.inhrelid
    where parent.relname in ('instance_history', 'attempt', 'event', 'note') and leaf.relname ~ '_[0-9]{8}$'
) part
left join horai.archive_partition known on known.table_name = part.table_name and known.day = part.day
where known.archived_at is null and (part.day + 1)::timestamp at time zone 'UTC' <= clock_timestamp() - least($1::interval, (select min(keep_history) from horai.retention))
    and (known.failed_at is null or known.failed_at <= clock_timestamp() - $2::interval)
order by part.day, part.table_name limit $3;

-- name: archive_files_of_day
-- tenant: platform
select tenant_id, path, rows, checksum, bytes, sha256 from horai.archive_file where table_name = $1 and day = $2;

-- name: share_tenant_row
-- tenant: platform
-- Holds a deletion of the tenant back until the file and its record are there. No row: the tenant is deleted, or is being deleted.
select id from horai.tenant where id = $1 and deleting_at is null for share;

-- name: insert_archive_file
-- tenant: $1
-- A file that is written again replaces its record: its path is the same.
insert into horai.archive_file (tenant_id, table_name, day, path, rows, checksum, bytes, sha256, from_time, to_time)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (tenant_id, table_name, day) do update
set path = excluded.path, rows = excluded.rows, checksum = excluded.checksum, bytes = excluded.bytes, sha256 = excluded.sha256,
    from_time = excluded.from_time, to_time = excluded.to_time, archived_at = clock_timestamp();

-- name: mark_archived
-- tenant: platform
insert into horai.archive_partition (table_name, day, archived_at, bytes)
values ($1, $2, clock_timestamp(), (select coalesce(sum(bytes), 0) from horai.archive_file where table_name = $1 and day = $2))
on conflict (table_name, day) do update
set archived_at = clock_timestamp(), bytes = excluded.bytes, failing_since = null, failed_at = null, error = null;

-- name: mark_archive_failed
-- tenant: platform
insert into horai.archive_partition (table_name, day, tries, failing_since, failed_at, error)
values ($1, $2, 1, clock_timestamp(), clock_timestamp(), $3)
on conflict (table_name, day) do update
set tries = archive_partition.tries + 1, failing_since = coalesce(archive_partition.failing_since, clock_timestamp()),
    failed_at = clock_timestamp(), error = excluded.error
where archive_partition.archived_at is null
returning tries;

-- name: archived_since
-- tenant: platform
select archived_at from horai.archive_partition where table_name = $1 and day = $2;

-- name: archive_figures
-- tenant: platform
select count(distinct day) filter (where archived_at is not null) as days, coalesce(sum(bytes), 0)::bigint as bytes,
    count(*) filter (where failed_at is not null and archived_at is null) as failing
from horai.archive_partition;

-- name: list_archive_files
-- tenant: $1
-- One page, the newest day first. $2, $3: the table and the day after which it begins; $5: only this table.
select id, table_name, day, path, rows, bytes, sha256, from_time, to_time, archived_at from horai.archive_file
where tenant_id = $1 and ($2::bigint is null or (day, id) < ($3::date, $2)) and ($5::text is null or table_name = $5)
order by day desc, id desc limit $4;

-- name: archived_instance_files
-- tenant: $1
-- Files with instances whose fire time is from $2 until $3.
select path, rows, bytes, sha256 from horai.archive_file
where tenant_id = $1 and table_name = 'instance_history' and to_time >= $2 and from_time < $3 order by day;

-- name: archive_file_of
-- tenant: $1
select path, rows, bytes, sha256 from horai.archive_file where tenant_id = $1 and table_name = 'instance_history' and day = $2;

-- name: tenant_has_archive
-- tenant: $1
select exists (select from horai.archive_file where tenant_id = $1) or exists (select from horai.archive_stray where tenant_id = $1);

-- name: last_restored
-- tenant: $1
-- The last instance of a day that is restored: they are restored with the newest first, as files have them.
select (extract(epoch from fire_time) * 1000000)::bigint as fire_time, id from horai.restored_instance
where tenant_id = $1 and archived_day = $2 order by fire_time, id limit 1;

-- name: restore_instances
-- tenant: $1
-- $3: the instances as a JSON array. One that is there already is left as it is.
insert into horai.restored_instance (tenant_id, archived_day, id, job_id, job, key, final_state, reason, fire_time, execute_time, created_at,
    claimed_at, finished_at, attempt, retry_count, fence, queue, priority, node, version, supersedes, replay_of, error_code, error_msg, payload,
    result, encrypted)
select $1, $2, id, job_id, job, key, final_state, reason, fire_time, execute_time, created_at, claimed_at, finished_at, attempt, retry_count,
    fence, queue, priority, node, version, supersedes, replay_of, error_code, error_msg, payload::json, result::json, encrypted
from json_to_recordset($3::json) as given(id bigint, job_id bigint, job text, key text, final_state text, reason text, fire_time timestamptz,
    execute_time timestamptz, created_at timestamptz, claimed_at timestamptz, finished_at timestamptz, attempt integer, retry_count integer,
    fence bigint, queue text, priority text, node text, version bigint, supersedes bigint, replay_of bigint, error_code text, error_msg text,
    payload text, result text, encrypted boolean)
on conflict do nothing;

-- name: count_restored
-- tenant: $1
select count(*) from horai.restored_instance where tenant_id = $1 and archived_day = $2;

-- name: delete_restored
-- tenant: $1
-- At most $3 rows, so that no statement is long.
delete from horai.restored_instance where tenant_id = $1 and archived_day = $2
    and (fire_time, id) in (select fire_time, id from horai.restored_instance where tenant_id = $1 and archived_day = $2 order by fire_time, id limit $3);
