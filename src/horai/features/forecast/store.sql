-- Counts for a forecast: active jobs by schedule, jitter and bounds, never job by job. Jitter is rounded to whole minutes, the
-- resolution of a forecast.

-- name: followers
-- tenant: $1
-- An index-only scan over all jobs that follow a schedule, once.
select crowd.schedule_id, schedule.spec, crowd.jitter, crowd.jobs
from (
    select schedule_id, (jitter_ms + 30000) / 60000 as jitter, count(*) as jobs from horai.job
    where tenant_id = $1 and schedule_id is not null and status = 0 and deleted_at is null
    group by 1, 2
) crowd join horai.schedule on schedule.id = crowd.schedule_id;

-- name: bounded_followers
-- tenant: $1
-- Followers that begin after $2 or end before $3. A bound outside of that time is returned as null, so that jobs that differ in
-- nothing else are counted together.
with bounded as (
    select schedule_id, (jitter_ms + 30000) / 60000 as jitter, start_at, end_at,
        start_at >= $3 is true or end_at < $2 is true as is_absent
    from horai.job
    where tenant_id = $1 and (start_at > $2 or end_at < $3) and (start_at is not null or end_at is not null)
        and schedule_id is not null and status = 0 and deleted_at is null
)
select schedule_id, jitter, case when start_at > $2 and not is_absent then start_at end as start_at,
    case when end_at < $3 and not is_absent then end_at end as end_at, is_absent, count(*) as jobs
from bounded group by 1, 2, 3, 4, 5;

-- name: examples
-- tenant: $1
-- Some jobs of each schedule of $2, for a user who wants to change one; instead of a tick, the job that it is for. Built-in jobs
-- (handlers that begin with $3) are changed elsewhere. Only the first 20 jobs of each schedule are read.
select known.schedule_id, example.name from unnest($2::bigint[]) as known(schedule_id)
cross join lateral (
    select coalesce(owner.name, follower.name) as name
    from (
        select id, name, lane_id, ticks_for from horai.job
        where tenant_id = $1 and schedule_id = known.schedule_id and status = 0 and deleted_at is null
        order by id limit 20
    ) follower
    join horai.lane on lane.id = follower.lane_id
    left join horai.job owner on owner.id = follower.ticks_for
    where owner.id is not null or not starts_with(lane.handler, $3)
    order by follower.id limit $4
) example;

-- name: jobs_of_schedules
-- tenant: $1
-- The first $4 jobs of each schedule of $2, chosen as above, for a user who wants to see or to spread them.
select known.schedule_id, found.name, found.jitter_ms from unnest($2::bigint[]) as known(schedule_id)
cross join lateral (
    select coalesce(owner.name, follower.name) as name, follower.jitter_ms
    from (
        select id, name, lane_id, ticks_for, jitter_ms from horai.job
        where tenant_id = $1 and schedule_id = known.schedule_id and status = 0 and deleted_at is null
        order by id limit $4
    ) follower
    join horai.lane on lane.id = follower.lane_id
    left join horai.job owner on owner.id = follower.ticks_for
    where owner.id is not null or not starts_with(lane.handler, $3)
    order by follower.id
) found;

-- name: count_after_finish
-- tenant: $1
-- Jobs whose next slot is unknown until the last one has ended.
select count(*) from horai.job where tenant_id = $1 and after_finish is not null and status = 0 and deleted_at is null;

-- name: highest_measured
-- tenant: $1
-- The minute of the last $2 with the most starts of the tenant, on all nodes together.
select at, sum(started)::bigint as starts from horai.minute
where tenant_id = $1 and at >= statement_timestamp() - $2::interval
group by at having sum(started) > 0 order by starts desc, at limit 1;
