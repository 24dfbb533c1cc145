-- Outcomes of a job by day.

-- name: days_of_job
-- tenant: by job
-- Counts at most $4 finished instances of the job for each day from $2 until $3, by fire time. They are read in no order,
-- because an order would have to read them all. An instance that ran ended after its fire time, so earlier partitions are not
-- read; an instance that was cancelled before the day is not counted.
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
