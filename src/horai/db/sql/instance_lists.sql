-- Lists of instances: at most one page, after a cursor (fire_time, id). For any filter, a statement reads at most $13 rows,
-- newest first: a page of rare rows may be short although another page follows.
-- `-- reversed:` names the ascending form of each statement: PostgreSQL cannot use an index in a direction given as a parameter.
-- $1 tenant, $2 and $3 cursor, $4 page size, $5 states, $6 job, $7 key, $8 from, $9 to, $10 queue, $11 tag, $12 error code,
-- $14 key prefix, $15 upper bound of all keys with that prefix, $16 only rows of the partial index for rare states,
-- $17 path of a payload field, $18 its value as text, $19 ids, $20 (live only) only started instances, which lie in the past.
-- The last two parameters: the largest payload to return in bytes, and the bytes after which the page ends.

-- name: list_live
-- tenant: $1
-- reversed: list_live_upwards
select {{read}}, reason, due, finished_at, result, job, encrypted, timezone, queue, priority, node_name, payload_size, bytes,
    case when payload_size <= $21::integer then payload end as payload
from (
    select *, coalesce(sum(bytes) over (order by fire_time desc, id desc rows between unbounded preceding and 1 preceding), 0) as before
    from (
        select *, 1024 + case when payload_size <= $21::integer then payload_size else 0 end + coalesce(octet_length(result::text), 0)
            + coalesce(octet_length(error_msg), 0) + coalesce(octet_length(key), 0) as bytes
        from (
            select *, octet_length(payload::text) as payload_size
            from (
        select {{live.read}}, null::smallint as reason, live.due, null::timestamptz as finished_at, null::json as result, live.payload,
            job.name as job, job.encrypted, job.definition ->> 'timezone' as timezone, lane.queue, lane.priority, node.name as node_name
        from (
            select * from horai.instance_live
            where tenant_id = $1 and (fire_time, id) < ($2, $3) and ($6::bigint is null or job_id = $6)
                and ($6::bigint is null or $7::text is null or key = $7)
                and ($6::bigint is null or $14::text is null or key >= $14 and key < $15::text)
                and ($8::timestamptz is null or fire_time >= $8) and ($9::timestamptz is null or fire_time < $9)
                and (not $16::boolean or retry_count > 0 or lost > 0) and (not $20::boolean or fire_time <= statement_timestamp())
                and ($19::bigint[] is null or id = any ($19))
            order by fire_time desc, id desc limit $13
        ) live
        join horai.job on job.id = live.job_id
        left join horai.lane on lane.id = case when live.lane = 0 then coalesce(live.own_lane, job.lane_id) else live.lane end
        left join horai.node on node.incarnation = live.node
        where live.state = any ($5::smallint[]) and ($7::text is null or live.key = $7)
            and ($14::text is null or live.key >= $14 and live.key < $15::text)
            and ($10::text is null or lane.queue = $10) and ($11::text is null or $11 = any (job.tags))
            and ($12::text is null or live.error_code = $12) and ($17::text[] is null or not job.encrypted and live.payload #>> $17 = $18::text)
        order by live.fire_time desc, live.id desc limit $4
            ) page
            offset 0
        ) sized
    ) weighed
) bounded
where before < $22::bigint
order by fire_time desc, id desc;

-- name: list_history
-- tenant: $1
-- reversed: list_history_upwards
select {{read}}, reason, due, finished_at, result, job, encrypted, timezone, queue, priority, node_name, payload_size, bytes,
    case when payload_size <= $20::integer then payload end as payload
from (
    select *, coalesce(sum(bytes) over (order by fire_time desc, id desc rows between unbounded preceding and 1 preceding), 0) as before
    from (
        select *, 1024 + case when payload_size <= $20::integer then payload_size else 0 end + coalesce(octet_length(result::text), 0)
            + coalesce(octet_length(error_msg), 0) + coalesce(octet_length(key), 0) as bytes
        from (
            select *, octet_length(payload::text) as payload_size
            from (
        select {{past.read}}, past.reason, null::timestamptz as due, past.finished_at, past.result, past.payload,
            job.name as job, job.encrypted, job.definition ->> 'timezone' as timezone, lane.queue, lane.priority, node.name as node_name
        from (
            select * from horai.instance_history
            where tenant_id = $1 and (fire_time, id) < ($2, $3) and ($6::bigint is null or job_id = $6)
                and ($6::bigint is null or $7::text is null or key = $7)
                and ($6::bigint is null or $14::text is null or key >= $14 and key < $15::text)
                and ($8::timestamptz is null or fire_time >= $8) and ($9::timestamptz is null or fire_time < $9)
                and (not $16::boolean or state <> 2) and ($19::bigint[] is null or id = any ($19))
            order by fire_time desc, id desc limit $13
        ) past
        join horai.job on job.id = past.job_id
        left join horai.lane on lane.id = case when past.lane = 0 then coalesce(past.own_lane, job.lane_id) else past.lane end
        left join horai.node on node.incarnation = past.node
        where past.state = any ($5::smallint[]) and ($7::text is null or past.key = $7)
            and ($14::text is null or past.key >= $14 and past.key < $15::text)
            and ($10::text is null or lane.queue = $10) and ($11::text is null or $11 = any (job.tags))
            and ($12::text is null or past.error_code = $12) and ($17::text[] is null or not job.encrypted and past.payload #>> $17 = $18::text)
        order by past.fire_time desc, past.id desc limit $4
            ) page
            offset 0
        ) sized
    ) weighed
) bounded
where before < $21::bigint
order by fire_time desc, id desc;

-- name: end_of_live
-- tenant: $1
-- reversed: end_of_live_upwards
-- Returns the last row that list_live has read, if more rows may follow. $4: the number of rows that it reads.
select fire_time, id from horai.instance_live
where tenant_id = $1 and (fire_time, id) < ($2, $3) and ($5::bigint is null or job_id = $5)
    and ($6::timestamptz is null or fire_time >= $6) and ($7::timestamptz is null or fire_time < $7)
    and (not $8::boolean or retry_count > 0 or lost > 0) and (not $12::boolean or fire_time <= statement_timestamp()) and ($5::bigint is null or $9::text is null or key = $9)
    and ($5::bigint is null or $10::text is null or key >= $10 and key < $11::text)
order by fire_time desc, id desc offset $4 - 1 limit 1;

-- name: end_of_history
-- tenant: $1
-- reversed: end_of_history_upwards
select fire_time, id from horai.instance_history
where tenant_id = $1 and (fire_time, id) < ($2, $3) and ($5::bigint is null or job_id = $5)
    and ($6::timestamptz is null or fire_time >= $6) and ($7::timestamptz is null or fire_time < $7)
    and (not $8::boolean or state <> 2) and ($5::bigint is null or $9::text is null or key = $9)
    and ($5::bigint is null or $10::text is null or key >= $10 and key < $11::text)
order by fire_time desc, id desc offset $4 - 1 limit 1;

-- name: recent_of_jobs
-- tenant: by job
-- Returns the last $2 instances of each of the jobs $1 with a fire time in the past.
select job.id as job_id, recent.id, recent.state, recent.fire_time, recent.started_at, recent.finished_at
from unnest($1::bigint[]) as job(id)
cross join lateral (
    select * from (
        (select id, state, fire_time, claimed_at as started_at, null::timestamptz as finished_at from horai.instance_live
        where job_id = job.id and fire_time <= statement_timestamp() order by fire_time desc limit $2)
        union all
        (select id, state, fire_time, claimed_at, finished_at from horai.instance_history
        where job_id = job.id and fire_time <= statement_timestamp() order by fire_time desc, id desc limit $2)
    ) last
    order by fire_time desc, id desc limit $2
) recent;

-- name: waiting_of_jobs
-- tenant: by job
-- Returns the earliest future fire time of the live instances of each job.
select job.id, waiting.fire_time from unnest($1::bigint[]) as job(id)
cross join lateral (
    select live.fire_time from horai.instance_live live
    where live.job_id = job.id and live.fire_time > statement_timestamp() order by live.fire_time limit 1
) waiting;
