-- Backups of an embedded database: the check of a copy, and the record of what was made.

-- name: backup_identity
-- tenant: platform
select id as cluster, current_setting('server_version') as postgresql from horai.cluster;

-- name: backup_counts
-- tenant: platform
select 'tenant' as name, count(*) as rows from horai.tenant
union all select 'job', count(*) from horai.job
union all select 'queue', count(*) from horai.queue
union all select 'live', count(*) from horai.instance_live
union all select 'history', count(*) from horai.instance_history
union all select 'attempt', count(*) from horai.attempt
union all select 'event', count(*) from horai.event
union all select 'deadLetter', count(*) from horai.dead_letter
union all select 'audit', count(*) from horai.audit;

-- name: record_backup
-- tenant: platform
with made as (
    insert into horai.backup_run (started_at, directory, path, size, lsn, violations, every, error)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
), old as (
    select id from horai.backup_run order by id desc offset 100
)
delete from horai.backup_run where id in (select id from old);

-- name: last_scheduled_backup
-- tenant: platform
select started_at from horai.backup_run where every is not null and error is null order by started_at desc limit 1;

-- name: backup_status
-- tenant: platform
-- Returns no row if there was never a backup. A schedule is overdue when its last success is older than twice its interval, until it has
-- tried nothing for 30 days: then it was given up.
select good.started_at, good.path, good.size, extract(epoch from clock_timestamp() - good.started_at)::double precision as age,
    bad.started_at as failed_at, bad.error,
    coalesce(last.every is not null and coalesce(good.started_at, '-infinity') < clock_timestamp() - 2 * last.every
        and last.started_at > clock_timestamp() - interval '30 days', false) as is_overdue
from (select every, started_at from horai.backup_run order by every is null, id desc limit 1) last
left join lateral (
    select started_at, path, size from horai.backup_run where error is null order by started_at desc limit 1
) good on true
left join lateral (
    select started_at, error from horai.backup_run where error is not null and started_at > coalesce(good.started_at, '-infinity')
    order by started_at desc limit 1
) bad on true;
