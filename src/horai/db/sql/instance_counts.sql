-- The number of instances that match a filter, with a bound: at most $19 live and $20 finished rows are read, newest fire time first.

-- name: count_instances
-- tenant: $1
-- $2 live states, $3 final states (null: all of them), $4 job, $5 key, $6 from, $7 to, $8 queue, $9 tag, $10 error code, $11 key prefix,
-- $12 upper bound of all keys with that prefix, $13 and $14 only rows of the partial index for rare states (live, finished), $15 path of
-- a payload field, $16 its value as text, $17 ids, $18 only started instances. One statement counts both tables, so that a row that
-- moves between them counts once. PostgreSQL plans it for the given values: without filters, the index of a tenant's fire times is enough.
with queued_lane as (
    select id from horai.lane where tenant_id = $1 and queue = $8
), queued_job as (
    select id from horai.job where tenant_id = $1 and lane_id in (select id from queued_lane)
), tagged_job as (
    select id from horai.job where tenant_id = $1 and $9 = any (tags)
), readable_job as (
    select id from horai.job where tenant_id = $1 and not encrypted
)
select live.matched + past.matched as matched, live.looked_at as live_rows, past.looked_at as past_rows
from (
    select count(*) as looked_at, count(*) filter (
        where ($2::smallint[] is null or live.state = any ($2)) and ($5::text is null or live.key = $5)
            and ($11::text is null or live.key >= $11 and live.key < $12::text)
            and ($8::text is null or coalesce(nullif(live.lane, 0), live.own_lane) in (select id from queued_lane)
                or live.lane = 0 and live.own_lane is null and live.job_id in (select id from queued_job))
            and ($9::text is null or live.job_id in (select id from tagged_job))
            and ($10::text is null or live.error_code = $10)
            and ($15::text[] is null or live.job_id in (select id from readable_job) and live.payload #>> $15 = $16::text)
    ) as matched
    from (
        select * from horai.instance_live
        where tenant_id = $1 and ($4::bigint is null or job_id = $4)
            and ($4::bigint is null or $5::text is null or key = $5)
            and ($4::bigint is null or $11::text is null or key >= $11 and key < $12::text)
            and ($6::timestamptz is null or fire_time >= $6) and ($7::timestamptz is null or fire_time < $7)
            and (not $13::boolean or retry_count > 0 or lost > 0) and (not $18::boolean or fire_time <= statement_timestamp())
            and ($17::bigint[] is null or id = any ($17))
        order by fire_time desc, id desc limit $19::bigint
    ) live
) live
cross join (
    select count(*) as looked_at, count(*) filter (
        where ($3::smallint[] is null or past.state = any ($3)) and ($5::text is null or past.key = $5)
            and ($11::text is null or past.key >= $11 and past.key < $12::text)
            and ($8::text is null or coalesce(nullif(past.lane, 0), past.own_lane) in (select id from queued_lane)
                or past.lane = 0 and past.own_lane is null and past.job_id in (select id from queued_job))
            and ($9::text is null or past.job_id in (select id from tagged_job))
            and ($10::text is null or past.error_code = $10)
            and ($15::text[] is null or past.job_id in (select id from readable_job) and past.payload #>> $15 = $16::text)
    ) as matched
    from (
        select * from horai.instance_history
        where tenant_id = $1 and ($4::bigint is null or job_id = $4)
            and ($4::bigint is null or $5::text is null or key = $5)
            and ($4::bigint is null or $11::text is null or key >= $11 and key < $12::text)
            and ($6::timestamptz is null or fire_time >= $6) and ($7::timestamptz is null or fire_time < $7)
            and (not $14::boolean or state <> 2) and ($17::bigint[] is null or id = any ($17))
        order by fire_time desc, id desc limit $20::bigint
    ) past
) past;
