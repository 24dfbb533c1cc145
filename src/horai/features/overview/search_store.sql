-- Search by a few characters. Every statement is bounded; an index finds names and keys that begin with the text.

-- name: search_jobs
-- tenant: $1
-- $2 the text, $3 an upper bound of all texts that begin with it. Names and titles that contain it are found among
-- the 50,000 newest jobs.
select id, name, status, title from (
    (select id, name, status, definition ->> 'title' as title, lane_id from horai.job
    where tenant_id = $1 and deleted_at is null and ticks_for is null and name >= $2 and name < $3 order by name limit $4)
    union
    (select id, name, status, title, lane_id from (
        select id, name, status, definition ->> 'title' as title, lane_id from horai.job
        where tenant_id = $1 and deleted_at is null and ticks_for is null order by id desc limit 50000
    ) newest
    where position(lower($2) in lower(name)) > 0 or position(lower($2) in lower(title)) > 0 order by length(name), name limit $4)
) found
where lane_id not in (select lane.id from horai.lane where lane.tenant_id = $1 and starts_with(lane.handler, $5))
order by lower(name) <> lower($2), not starts_with(lower(name), lower($2)), length(name), name limit $4;

-- name: search_workflows
-- tenant: $1
select id, name from (
    select id, name from horai.workflow where tenant_id = $1 and deleted_at is null order by id desc limit 10000
) newest
where position(lower($2) in lower(name)) > 0
order by not starts_with(lower(name), lower($2)), length(name), name limit $3;

-- name: search_keys
-- tenant: $1
-- Instances whose key begins with the text, live ones of a job first. Searched are the jobs of the 5,000 newest live and the
-- 5,000 newest finished instances, and the 500 newest jobs.
with asked as materialized (
    select job.id, job.name from (
        select job_id from (
            select job_id from horai.instance_live where tenant_id = $1 order by fire_time desc, id desc limit 5000) live
        union
        select job_id from (
            select job_id from horai.instance_history where tenant_id = $1 order by fire_time desc, id desc limit 5000) past
        union
        select id from (
            select id from horai.job where tenant_id = $1 and deleted_at is null order by id desc limit 500) newest
    ) active
    join horai.job on job.id = active.job_id and job.deleted_at is null
    order by job.id desc limit 2000
)
select found.id, asked.id as job_id, asked.name as job, found.key, found.state, found.fire_time
from asked cross join lateral (
    (select id, key, state, fire_time from horai.instance_live
    where job_id = asked.id and key >= $2 and key < $3 order by key limit $4)
    union all
    (select id, key, state, fire_time from horai.instance_history
    where job_id = asked.id and key >= $2 and key < $3 order by key limit $4)
) found
limit $4;
