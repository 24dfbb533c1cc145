-- The questions of db/verify.py about assets. $1: number of examples; $2: time that a start may take while a node is live.

-- name: verify_asset_starts
-- tenant: platform
-- A job waits although all assets that it waits for, or any of them, were updated more than $2 ago. A job that was changed since, or that
-- waits for the end of the instance that it started last, is left out.
select format('job %s waits although its assets were updated until %s', waits.job_id, ready.at) as example, count(*) over () as violations
from horai.asset_wait waits join horai.job on job.id = waits.job_id
cross join lateral (
    select max(first.at) as at, min(first.at) as any_at, count(*) as updated from (
        select min(made.at) as at from horai.asset_delivery told join horai.asset_update made on made.id = told.update_id
        where told.job_id = waits.job_id and told.instance_id is null group by told.asset_id
    ) first
) ready
where job.status = 0 and job.deleted_at is null and job.updated_at < clock_timestamp() - $2::interval
    and case when waits.is_any then ready.any_at < clock_timestamp() - $2::interval
        else ready.at < clock_timestamp() - $2::interval
            and ready.updated = (select count(distinct asset_id) from horai.asset_use wanted where wanted.job_id = waits.job_id and wanted.role = 1) end
    and not (job.overlap <> 0 and (
        exists (select from horai.instance_live live where live.id = waits.last_instance)
        or exists (select from horai.instance_history past
            where past.id = waits.last_instance and past.finished_at > clock_timestamp() - $2::interval)))
    and exists (select from horai.node where fenced_at is null and stopped_at is null
        and lease_until > clock_timestamp() and started_at < clock_timestamp() - $2::interval)
order by waits.job_id limit $1;

-- name: verify_asset_instances
-- tenant: platform
-- The updates of a start belong to an instance of the job that waited for them.
select format('job %s has started with the update %s as instance %s, which is one of job %s', told.job_id, told.update_id, told.instance_id,
    coalesce(live.job_id, past.job_id)) as example, count(*) over () as violations
from horai.asset_delivery told
left join horai.instance_live live on live.id = told.instance_id
left join horai.instance_history past on past.id = told.instance_id
where told.instance_id is not null and coalesce(live.job_id, past.job_id) <> told.job_id
order by told.job_id, told.update_id limit $1;
