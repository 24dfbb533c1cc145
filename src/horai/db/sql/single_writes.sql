-- Single writes over REST: the common case of requests that arrive together, in one statement and without a transaction around it.

-- name: insert_fresh
-- tenant: $1
-- moves: -> INIT
-- The common case of puts: inserts instances of keys that have neither a live instance nor a past, and returns them; all other keys
-- are left to the caller. $2 or $3: the id or the name of the job, which is neither encrypted nor metered; $9: the lock_timeout.
-- The past is read again after the insert. past_of_keys is volatile and gets the keys of the inserted rows, so that it has a later
-- snapshot, which shows every instance whose end the insert has waited for. If one of the keys has a past then, the division by
-- zero undoes the statement. A lane that was made after this statement began has no queue here.
with job as materialized (
    select job.id, job.name, job.payload, job.lane_id, case when job.status = 0 then job.lane_id else 0 end as lane
    from (select set_config('lock_timeout', $9, true) as lock_timeout) patience join horai.job on patience.lock_timeout is not null
    where job.tenant_id = $1 and job.deleted_at is null and not job.encrypted and not job.metered and job.id = coalesce($2::bigint,
        (select named.id from horai.job named where named.tenant_id = $1 and named.name = $3::text and named.deleted_at is null))
    for key share of job
), known as materialized (
    select key from horai.past_of_keys((select id from job), $5::text[])
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, key, fire_time, execute_time, born_for, due, slot, payload, version)
    select fresh.id, job.id, $1, job.lane, fresh.id % $4, fresh.key, fresh.at, fresh.at, fresh.at, greatest(fresh.at, clock_timestamp()), -fresh.id,
        coalesce(fresh.payload, job.payload), fresh.version
    from job cross join (
        select nextval('horai.instance_id') as id, wish.key, coalesce(wish.at, clock_timestamp()) as at, wish.payload, wish.version
        from unnest($5::text[], $6::timestamptz[], $7::json[], $8::bigint[]) as wish(key, at, payload, version)
        where wish.key <> all (array(select key from known))
        order by wish.key
    ) fresh
    on conflict (job_id, key) where key is not null do nothing
    returning {{read}}, lane, due, payload
), ended as materialized (
    select count(*) from horai.past_of_keys((select id from job), array(select key from made))
)
select {{made.read}}, null::smallint as reason, made.due, null::timestamptz as finished_at, null::json as result, made.payload,
    job.name as job, false as encrypted, lane.queue, lane.priority, null::text as node_name, made.lane, 1 / (ended.count = 0)::integer as proof
from made cross join job cross join ended left join horai.lane on lane.id = job.lane_id;
