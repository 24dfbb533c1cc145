-- Single writes over REST: the common case of requests that arrive together, in one statement and without a transaction around it.

-- name: insert_fresh
-- tenant: $1
-- moves: -> INIT
-- The common case of puts: inserts instances of keys that have neither a live instance nor a past, and returns them; all other keys
-- are left to the caller. $2 or $3: the id or the name of the job, which is neither encrypted nor metered; $9: the lock_timeout.
-- The past is read again after the insert. past_of_keys is volatile and gets the keys of the inserted rows, so that it has a later
-- snapshot, which shows every instance whose end the insert has waited for. If one of the keys has a past then, the division by
-- zero undoes the statement.
with job as materialized (
    select job.id, job.name, job.payload, lane.queue, lane.priority, case when job.status = 0 then lane.id else 0 end as lane
    from (select set_config('lock_timeout', $9, true) as lock_timeout) patience join horai.job on patience.lock_timeout is not null
    join horai.lane on lane.id = job.lane_id
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
    job.name as job, false as encrypted, job.queue, job.priority, null::text as node_name, made.lane, 1 / (ended.count = 0)::integer as proof
from made cross join job cross join ended;

-- name: insert_triggered
-- tenant: $1
-- moves: -> INIT
-- The common case of triggers: takes the Idempotency-Keys $6 that are new, inserts their instances, and records each in the audit
-- log; all other keys are left to the caller. $2 or $3: the id or the name of the job, which is neither encrypted, metered nor a
-- refresh job; $5: the lock_timeout. $17: the role of a live node that can run every job. No key is taken if the tenant has reached its
-- limit of $18 keys or $19 bytes. The caller wakes the sealer after the commit: a commit with a notification takes a global lock,
-- which concurrent requests would hold during their disk writes, one after the other.
with job as materialized (
    select job.id, job.name, job.payload, lane.queue, lane.priority, case when job.status = 0 then lane.id else 0 end as lane
    from (select set_config('lock_timeout', $5, true) as lock_timeout) patience join horai.job on patience.lock_timeout is not null
    join horai.lane on lane.id = job.lane_id
    where job.tenant_id = $1 and job.deleted_at is null and not job.encrypted and not job.metered and job.id = coalesce($2::bigint,
        (select named.id from horai.job named where named.tenant_id = $1 and named.name = $3::text and named.deleted_at is null))
        and job.definition ->> 'refresh' is null
        and exists (select from horai.node where rescued_at is null and fenced_at is null and stopped_at is null
            and lease_until > clock_timestamp() and $17::text = any (roles))
        and not exists (select from horai.idempotency_load load where load.tenant_id = $1 and (load.keys >= $18 or load.bytes >= $19))
    for key share of job
), asked as materialized (
    select * from unnest($6::text[], $7::bytea[], $8::json[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
        as asked(key, digest, payload, actor_kind, actor_id, actor_name, actor_role, address, request_id, after)
), took as (
    insert into horai.idempotency_key (tenant_id, scope, key, request_hash, job_id, instance_id)
    select $1, 'trigger:' || job.id, fresh.key, fresh.digest, job.id, fresh.id
    from job cross join (select nextval('horai.instance_id') as id, asked.* from asked order by asked.key) fresh
    on conflict (tenant_id, scope, key) do nothing
    returning key, instance_id as id
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
    select fresh.id, job.id, $1, job.lane, fresh.id % $4, fresh.at, fresh.at, fresh.at, greatest(fresh.at, clock_timestamp()), -fresh.id,
        coalesce(fresh.payload, job.payload)
    from job cross join (
        select took.id, asked.payload, date_trunc('milliseconds', clock_timestamp()) as at from took join asked using (key)
    ) fresh
    returning {{read}}, lane, due, payload
), told as (
    insert into horai.audit (
        tenant_id, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name, after
    )
    select $1, actor_kind, actor_id, actor_name, actor_role, address, request_id, $16, 'job', job.id::text, job.name,
        ('{"instance":"' || took.id || '",' || substr(asked.after, 2))::json
    from job cross join took join asked using (key)
)
select {{made.read}}, null::smallint as reason, made.due, null::timestamptz as finished_at, null::json as result, made.payload,
    job.name as job, false as encrypted, job.queue, job.priority, null::text as node_name, made.lane, took.key as request_key
from took join made on made.id = took.id cross join job;
