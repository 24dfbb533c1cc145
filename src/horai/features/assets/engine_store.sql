-- The stage of assets: successes become updates, and updates start jobs. Each statement can be repeated after a crash.

-- name: any_assets
-- tenant: platform
select exists (select from horai.asset_use);

-- name: lock_asset_cursor
-- tenant: platform
-- No row: another process reads the history now. `oldest_open` and `next_id` are of the snapshot before the read.
select samples::text as samples, clock_timestamp() as now, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest_open,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next_id
from horai.asset_cursor where id = 1 for update skip locked;

-- name: move_asset_cursor
-- tenant: platform
update horai.asset_cursor set samples = $1::json where id = 1;

-- name: new_successes
-- tenant: platform
-- Up to $3 successes since $1 of jobs that produce assets, of which the update is not recorded. One whose function skipped it ("horai:skip")
-- updates nothing. The result is the metadata of the update, if it has at most $2 bytes.
select made.tenant_id, made.asset_id, done.finished_at, done.job_id, done.id, run.id as run_id, done.fire_time, run.interval_start,
    schedule.spec::text as spec, case when run.id is null and octet_length(done.result::text) <= $2 then done.result::text end as metadata
from horai.instance_history done join horai.asset_use made on made.job_id = done.job_id and made.role = 0 and made.node = ''
join horai.job on job.id = done.job_id left join horai.schedule on schedule.id = job.schedule_id
left join horai.workflow_run run on run.id = done.id
where done.finished_at >= $1 and done.finished_at >= made.since and done.state = 2
    and done.job_id = any (array(select job_id from horai.asset_use where role = 0 and node = ''))
    and (done.result is null or done.result::text !~ '^\s*\{\s*"horai:skip"')
    and not exists (select from horai.asset_update known where known.asset_id = made.asset_id and known.instance_id = done.id)
order by done.finished_at, done.id limit $3;

-- name: add_asset_updates
-- tenant: platform
-- Records updates by successes. One that another process has recorded stays.
insert into horai.asset_update (tenant_id, asset_id, at, job_id, instance_id, run_id, interval_start, interval_end, metadata)
select * from unnest($1::integer[], $2::bigint[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[], $7::timestamptz[],
    $8::timestamptz[], $9::json[])
on conflict (asset_id, instance_id) where instance_id is not null do nothing;

-- name: ready_jobs
-- tenant: platform
-- Locks up to $1 jobs that may start: each asset that they wait for has an update that they did not start with, or any has one. A job
-- that may not overlap waits until the instance that it started last has ended. Rows that another process has locked are skipped.
select waits.job_id from horai.asset_wait waits join horai.job on job.id = waits.job_id
where job.status = 0 and job.deleted_at is null
    and exists (select from horai.asset_delivery told where told.job_id = waits.job_id and told.instance_id is null)
    and (waits.is_any or not exists (
        select from horai.asset_use wanted where wanted.job_id = waits.job_id and wanted.role = 1 and not exists (
            select from horai.asset_delivery told
            where told.job_id = waits.job_id and told.asset_id = wanted.asset_id and told.instance_id is null)))
    and not (job.overlap <> 0 and exists (select from horai.instance_live live where live.id = waits.last_instance))
order by waits.job_id limit $1 for no key update of waits skip locked;

-- name: note_start
-- tenant: by job
-- The job $1 has started the instance $2 with these updates.
with told as (
    update horai.asset_delivery set instance_id = $2 where job_id = $1 and update_id = any ($3::bigint[]) and instance_id is null
)
update horai.asset_wait set last_instance = $2 where job_id = $1;

-- name: trim_asset_updates
-- tenant: platform
-- Forgets up to $2 updates that are older than $1 and that no job waits to start with. The newest of each asset stays.
with old as materialized (
    select made.id from horai.asset_update made where made.at < $1
        and exists (select from horai.asset_update later where later.asset_id = made.asset_id and later.id > made.id)
        and not exists (select from horai.asset_delivery told where told.update_id = made.id and told.instance_id is null)
    order by made.at limit $2
), gone as (
    delete from horai.asset_delivery told using old where told.update_id = old.id
)
delete from horai.asset_update made using old where made.id = old.id returning made.id;
