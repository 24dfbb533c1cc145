-- Concurrency keys: at most n instances of a job with the same key run at once (docs/decisions/0061). An instance that finds no place waits
-- in the parking lane. Claims and releases lock the keys of their rows (horai.lock_keys); all other statements know nothing of them.

-- name: claim_keyed
-- tenant: platform
-- moves: INIT | FAIL -> RUNNING
-- Claims as claim_due does, from lanes that have keys. A row whose key has no place goes to the parking lane; it is returned without a fence,
-- so that the caller knows that it has passed the row.
with me as materialized (
    select from horai.node where incarnation = $1 and fenced_at is null and stopped_at is null for key share
), picked as materialized (
    select due.id, due.job_id, due.concurrency_key, scan.lane, due.due
    from unnest($3::smallint[], $4::integer[], $5::timestamptz[], $6::bigint[], $7::integer[]) as scan(shard, lane, due, id, rows)
    cross join lateral (
        select live.id, live.job_id, live.concurrency_key, live.due from horai.instance_live live
        where live.shard = scan.shard and live.lane = scan.lane and live.state in (0, 3)
            and (live.due, live.id) > (scan.due, scan.id) and live.due <= statement_timestamp()
            and (live.expires_at is null or live.expires_at > statement_timestamp())
        order by live.due, live.id limit scan.rows
        for update skip locked
    ) due
    where exists (select from me) and scan.lane = any (array(select unnest(horai.open_keyed_lanes($4::integer[]))))
), admitted as materialized (
    select horai.admit_keys(array_agg(id), array_agg(job_id), array_agg(concurrency_key), $4::integer[]) as ids from picked
), claimed as (
    update horai.instance_live claimed
    set state = 1, attempt = claimed.attempt + 1, fence = claimed.fence + 1, node = $1, claim = $2,
        error_code = null, error_msg = null, claimed_at = clock_timestamp(), updated_at = clock_timestamp()
    where claimed.id = any (array(select unnest(ids) from admitted))
    returning claimed.id, claimed.job_id, claimed.lane, claimed.due, claimed.attempt, claimed.fence, claimed.retry_count, claimed.slot,
        claimed.key, claimed.fire_time, nullif(claimed.execute_time, claimed.fire_time) as execute_time,
        nullif(claimed.born_for, claimed.fire_time) as born_for,
        case when not horai.is_large(claimed.payload) then claimed.payload end as payload,
        horai.is_large(claimed.payload) as has_large_payload, claimed.lost, claimed.concurrency_key
)
select * from claimed
union all
select picked.id, picked.job_id, picked.lane, picked.due, null, null, null, null, null, null, null, null, null, null, null, null
from picked where picked.id not in (select unnest(ids) from admitted);

-- name: may_keys_wait
-- tenant: platform
select horai.may_keys_wait();

-- name: release_keys
-- tenant: platform
-- Lets waiting instances of these keys be claimed, as many as there are free places.
select instance_id, new_lane, new_due, of_job, of_key from horai.release_keys($1::bigint[], $2::text[]);

-- name: parked_keys
-- tenant: platform
-- Returns the next $3 keys after ($1, $2) for which instances wait in the parking lane. Reads one index entry for each key.
with recursive parked as (
    (select live.job_id, live.concurrency_key as key from horai.instance_live live
    where live.concurrency_key is not null and live.lane = 0 and (live.job_id, live.concurrency_key) > ($1::bigint, $2::text)
    order by live.job_id, live.concurrency_key limit 1)
    union all
    select following.* from parked cross join lateral (
        select live.job_id, live.concurrency_key as key from horai.instance_live live
        where live.concurrency_key is not null and live.lane = 0 and (live.job_id, live.concurrency_key) > (parked.job_id, parked.key)
        order by live.job_id, live.concurrency_key limit 1
    ) following
)
select job_id, key from parked limit $3;

-- name: any_parked_keys
-- tenant: platform
select exists (select from horai.instance_live live where live.concurrency_key is not null and live.lane = 0);

-- name: has_parked_keys
-- tenant: by job
select exists (
    select from horai.instance_live live where live.job_id = any ($1::bigint[]) and live.concurrency_key is not null and live.lane = 0);

-- name: assign_keys
-- tenant: by instance
-- Gives the instances $1 the keys $2. $3: the caller's transaction has inserted them.
select instance_id, new_lane, new_due from horai.assign_keys($1::bigint[], $2::text[], $3);

-- name: enqueue_with_keys
-- tenant: $2
-- moves: -> INIT
-- Inserts instances as `enqueue_many` does, each with its concurrency key ($8), and marks the lane of the job.
with job as materialized (
    select id, tenant_id, payload, lane_id, case when status = 0 then lane_id else 0 end as lane, metered from horai.job
    where tenant_id = $2 and name = $1 and deleted_at is null and encrypted = $6 and search_paths = $7::text[] for key share
), admitted as materialized (
    select * from job
    where not metered or horai.charge(tenant_id, cardinality($5::json[]), (select max(octet_length(p::text)) from unnest($5::json[]) as p))
), marked as materialized (
    select id, horai.mark_keyed(array[lane_id], true) from admitted
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload, concurrency_key)
    select fresh.id, job.id, job.tenant_id, job.lane, fresh.id % $3, fresh.at, fresh.at, fresh.at, greatest(fresh.at, clock_timestamp()),
        -fresh.id, coalesce(fresh.payload, job.payload), fresh.concurrency_key
    from admitted job join marked on marked.id = job.id cross join (
        select nextval('horai.instance_id') as id, date_trunc('milliseconds', coalesce($4::timestamptz, clock_timestamp())) as at, item.payload,
            item.concurrency_key
        from unnest($5::json[], $8::text[]) with ordinality as item(payload, concurrency_key, position)
        order by item.position
    ) fresh
    returning id, lane, due
)
select array_agg(id order by id) as ids, lane, min(due) as due from made group by lane;

-- name: holders_of_key
-- tenant: by job
-- Returns the first $3 instances of the job $1 that run with the key $2.
select live.id from horai.instance_live live
where live.job_id = $1 and live.concurrency_key = $2 and live.lane <> 0 and live.state = 1 order by live.id limit $3;

-- name: verify_key_limit
-- tenant: platform
-- More instances of a key may run than its job allows now, if they were claimed before the job was changed.
select format('%s instances of job %s run with the concurrency key %s, and its limit is %s', running, job_id, concurrency_key, places) as example,
    count(*) over () as violations
from (
    select live.job_id, live.concurrency_key, count(*) as running, max(live.claimed_at) as claimed_at, job.updated_at,
        horai.places_of_key(job.definition) as places
    from horai.instance_live live join horai.job on job.id = live.job_id
    where live.concurrency_key is not null and live.state = 1
    group by live.job_id, live.concurrency_key, job.id
) counted
where running > places and claimed_at > updated_at
order by job_id, concurrency_key limit $1;
