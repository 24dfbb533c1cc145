-- The service level per minute, of all tenants together.

-- name: roll_up_service_level
-- tenant: platform
-- Adds up the starts of finished minutes, and those with a delay of at most class $1. A process writes its counts within ten seconds; a
-- minute is read again for five minutes, in case a process was late. Returns how many minutes there were.
with reached as (
    select coalesce(max(at) - interval '5 minutes', '-infinity') as at from horai.sli_minute
), counted as (
    insert into horai.sli_minute (at, started, on_time)
    select minute.at, sum(minute.started), sum((
        select coalesce(sum((pair ->> 1)::bigint), 0) from json_array_elements(minute.delays) as pair where (pair ->> 0)::integer <= $1
    ))
    from horai.minute cross join reached
    where minute.at >= reached.at and minute.at < date_trunc('minute', clock_timestamp())
    group by minute.at having sum(minute.started) > 0
    on conflict (at) do update set started = excluded.started, on_time = excluded.on_time
    returning at
)
select count(*) as minutes from counted;

-- name: forget_service_level
-- tenant: platform
delete from horai.sli_minute where at < clock_timestamp() - $1::interval;

-- name: service_level_since
-- tenant: platform
-- Returns the counts per hour: 30 days are 720 rows.
select date_trunc('hour', at, 'UTC') as hour, sum(started)::bigint as started, sum(on_time)::bigint as on_time
from horai.sli_minute where at >= clock_timestamp() - $1::interval group by 1 order by 1;
