-- How a job went, day by day.

-- name: days_of_job
-- Of each day from $2 until $3 at most $4 of the job's finished instances, by the time they were for: whichever come first,
-- for an order would have to read them all. What ran ended after that time, so that earlier partitions need not be looked
-- into; what was cancelled before it is not there.
select day.number, looked.succeeded, looked.dead, looked.cancelled, looked.instances
from unnest($2::timestamptz[], $3::timestamptz[]) with ordinality as day(since, until, number)
cross join lateral (
    select count(*) filter (where state = 2) as succeeded, count(*) filter (where state = 4) as dead,
        count(*) filter (where state = 5) as cancelled, count(*) as instances
    from (
        select past.state from horai.instance_history past
        where past.job_id = $1 and past.fire_time >= day.since and past.fire_time < day.until and past.finished_at >= day.since
        limit $4
    ) found
) looked
where looked.instances > 0
order by day.number;
