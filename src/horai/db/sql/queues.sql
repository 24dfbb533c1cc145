-- Queues and their permits (rows of queue_slot). A transaction that changes a queue locks its row FOR UPDATE and takes its
-- advisory lock (shut_queue, see horai.open_lanes), then locks the permits in number order. Only claims take permits, and claims
-- never wait here. The pool of a tenant is a row of horai.queue too, with the permits of the quota `concurrency`; a transaction that
-- changes it shuts all queues of the tenant.

-- name: make_queue
-- tenant: $1
insert into horai.queue (tenant_id, name)
select $1, $2 where not exists (select from horai.queue where tenant_id = $1 and name = $2)
on conflict do nothing;

-- name: lock_queue
-- tenant: $1
select queue.*, null::bigint as running from horai.queue where tenant_id = $1 and name = $2 and not is_pool for update;

-- name: queue_by_name
-- tenant: $1
select queue.*, case when queue.max_concurrency is not null then (
    select count(*) from horai.queue_slot slot where slot.queue_id = queue.id and slot.instance_id is not null) end as running
from horai.queue where tenant_id = $1 and name = $2 and not is_pool;

-- name: queues_of_application
-- tenant: $1
-- The queues with the names $2, and those that the application $3 has declared (null: none).
select queue.*, null::bigint as running from horai.queue
where tenant_id = $1 and not is_pool and (name = any($2::text[]) or declared_by = $3::text) order by name;

-- name: list_queues
-- tenant: $1
select queue.*, case when queue.max_concurrency is not null then (
    select count(*) from horai.queue_slot slot where slot.queue_id = queue.id and slot.instance_id is not null) end as running
from horai.queue where tenant_id = $1 and id > $2 and not is_pool order by id limit $3;

-- name: loads_of_queues
-- tenant: by queue
-- Counts the waiting and the running instances among the first $3 due rows of each of the queues $1. An instance that waits for
-- its workflow run takes no permit and is not counted.
select queue.id, count(*) filter (where due.state <> 1) as waiting, count(*) filter (where due.state = 1 and due.node <> 0) as running
from unnest($1::integer[]) as queue(id)
cross join lateral (
    select live.state, live.node from horai.lane cross join generate_series(0, $2::integer - 1) as shard(n)
    join horai.instance_live live on live.shard = shard.n and live.lane = lane.id and live.due <= statement_timestamp()
    where lane.queue_id = queue.id and live.state in (0, 1, 3) limit $3
) due
group by queue.id;

-- name: shut_queue
-- tenant: by queue
select horai.shut_queue($1);

-- name: adopt_running
-- tenant: by queue
-- A queue gets its first limit: RUNNING rows of its lanes were claimed without permits and get one now, marked as retired until
-- arrange_slots counts them. The caller holds the advisory lock of the queue, so that no claim is missed. The rows are locked,
-- so that a transaction that settles one of them either has committed or will find its permit.
with running as materialized (
    select live.id, live.fence, live.node, live.claimed_at
    from horai.lane cross join generate_series(0, $2::integer - 1) as shard(n)
    join horai.instance_live live on live.shard = shard.n and live.lane = lane.id and live.state = 1 and live.node <> 0
    where lane.queue_id = $1 and not exists (
        select from horai.queue_slot seat where seat.queue_id = $1 and seat.instance_id = live.id and seat.fence = live.fence)
    order by live.id for update of live
)
insert into horai.queue_slot (tenant_id, queue_id, n, instance_id, fence, node, taken_at, retired, version)
select (select tenant_id from horai.queue where id = $1), $1, (select coalesce(max(n), 0) from horai.queue_slot where queue_id = $1) + row_number() over (order by claimed_at, id),
    id, fence, node, claimed_at, true, 0
from running;

-- name: make_pool
-- tenant: $1
insert into horai.queue (tenant_id, name, is_pool)
select $1, '*', true where not exists (select from horai.queue where tenant_id = $1 and is_pool)
on conflict do nothing;

-- name: pool_of_tenant
-- tenant: $1
select pool.id, pool.version, pool.max_concurrency, (
    select count(*) from horai.queue_slot slot where slot.queue_id = pool.id and slot.instance_id is not null) as running
from horai.queue pool where pool.tenant_id = $1 and pool.is_pool;

-- name: adopt_running_of_tenant
-- tenant: $1
-- The tenant $1 gets the quota: its RUNNING rows get a permit of the pool $2, as adopt_running gives them. The caller has shut all
-- queues of the tenant.
with running as materialized (
    select live.id, live.fence, live.node, live.claimed_at from horai.instance_live live
    where live.tenant_id = $1 and live.state = 1 and live.node <> 0 and not exists (
        select from horai.queue_slot seat where seat.queue_id = $2 and seat.instance_id = live.id and seat.fence = live.fence)
    order by live.id for update of live
)
insert into horai.queue_slot (tenant_id, queue_id, n, instance_id, fence, node, taken_at, retired, version)
select $1, $2, (select coalesce(max(n), 0) from horai.queue_slot where queue_id = $2) + row_number() over (order by claimed_at, id),
    id, fence, node, claimed_at, true, 0
from running;

-- name: join_pool
-- tenant: $1
-- $2 null: the queues of the tenant need no permits of its pool any more.
update horai.queue set pool_id = $2::integer where tenant_id = $1 and not is_pool and pool_id is distinct from $2::integer;

-- name: write_pool
-- tenant: platform
-- Run it last in its transaction, as write_queue.
update horai.queue set max_concurrency = $2, version = version + 1, updated_at = clock_timestamp() where id = $1;

-- name: lock_slots
-- tenant: by queue
select count(*) from (select from horai.queue_slot where queue_id = $1 order by n for update) locked;

-- name: arrange_slots
-- tenant: by queue
-- $2 the limit (null: none), $3 the queue's new version. All permits are locked. Taken permits are kept first; above the limit,
-- a free permit is deleted and a taken one is retired; then free permits are added up to the limit.
with ranked as (
    select n, instance_id is null as is_free, row_number() over (order by instance_id is null, n) > coalesce($2::integer, 0) as is_beyond
    from horai.queue_slot where queue_id = $1
), dropped as (
    delete from horai.queue_slot slot using ranked
    where slot.queue_id = $1 and slot.n = ranked.n and ranked.is_beyond and ranked.is_free
), kept as (
    update horai.queue_slot slot set retired = ranked.is_beyond, version = $3 from ranked
    where slot.queue_id = $1 and slot.n = ranked.n and not (ranked.is_beyond and ranked.is_free)
), room as (
    select count(*) as slots from ranked
)
insert into horai.queue_slot (tenant_id, queue_id, n, version)
select (select tenant_id from horai.queue where id = $1), $1, fresh.n, $3 from room cross join generate_series(1, coalesce($2::integer, 0) + room.slots) as fresh(n)
where not exists (select from ranked where ranked.n = fresh.n)
order by fresh.n limit greatest(0, coalesce($2::integer, 0) - (select slots from room));

-- name: write_queue
-- tenant: by queue
-- Run it last in its transaction: every permit taken earlier then has a time before updated_at. A new rate starts with one token.
-- $11 the application that declares the queue; null: its owner stays.
update horai.queue
set priority = $2, max_concurrency = $3, rate_count = $4::integer, rate_per = $5::interval, paused = $6,
    note = $7, title = $8, description = $9, owner = $10, declared_by = coalesce($11, declared_by),
    tokens = case when (rate_count, rate_per) is distinct from ($4::integer, $5::interval) then 1 else tokens end,
    refilled_at = case when (rate_count, rate_per) is distinct from ($4::integer, $5::interval) then clock_timestamp() else refilled_at end,
    version = version + 1, updated_at = clock_timestamp()
where id = $1
returning queue.*, case when max_concurrency is not null then (
    select count(*) from horai.queue_slot slot where slot.queue_id = queue.id and slot.instance_id is not null) end as running;

-- name: relane_queue
-- tenant: by queue
-- Lanes of jobs that set no priority take the priority of the queue; the instances stay in their lanes.
update horai.lane set priority = $2 where queue_id = $1 and inherits and priority <> $2;

-- name: claim_limited
-- tenant: platform
-- moves: INIT | FAIL -> RUNNING
-- $1 incarnation, $2 claim id, $3 queue, $4 shards, $5 lanes, $6 and $7 each lane's cursor (due, id), $8 rows at most, $9 each lane's urgency.
-- Claims at most as many rows as there are free permits of the queue, if it has a limit, and of its pool, if its tenant has the quota;
-- most urgent first, then longest due. Checks the node as claim_due does. While N retired permits are taken, N free permits are locked and left free, so
-- that the running instances stay within the limit under concurrent claims. A permit with another version than the one that
-- enter_keyed_queue returns is not taken: the queue was changed after this statement began. A row whose concurrency key has no place goes to the
-- parking lane, and is returned without a fence.
with me as materialized (
    select from horai.node where incarnation = $1 and fenced_at is null and stopped_at is null for key share
), allowed as materialized (
    select entry.* from horai.enter_keyed_queue($3) as entry where exists (select from me)
), waiting as materialized (
    select head.id, lane.lane, head.due, lane.urgency
    from allowed
    cross join unnest($4::smallint[], $5::integer[], $6::timestamptz[], $7::bigint[], $9::smallint[]) as lane(shard, lane, due, id, urgency)
    cross join lateral (
        select live.id, live.due from horai.instance_live live
        where live.shard = lane.shard and live.lane = lane.lane and live.state in (0, 3)
            and (live.due, live.id) > (lane.due, lane.id) and live.due <= statement_timestamp()
            and (live.expires_at is null or live.expires_at > statement_timestamp())
        order by live.due, live.id limit $8
    ) head
    order by lane.urgency, head.due, head.id limit $8
), free as materialized (
    select slot.n from horai.queue_slot slot
    where slot.queue_id = $3 and slot.instance_id is null and slot.version = (select version from allowed)
    order by slot.n
    limit (select case when count(*) > 0 then count(*) + (select beyond from allowed) else 0 end from waiting)
    for update skip locked
), seat as materialized (
    select n, row_number() over (order by n) - (select beyond from allowed) as place from free
), wanted as materialized (
    select case when is_limited then (select count(*) from seat where place > 0) else (select count(*) from waiting) end as rows from allowed
), pool_free as materialized (
    select slot.n from horai.queue_slot slot
    where slot.queue_id = (select pool_id from allowed) and slot.instance_id is null and slot.version = (select pool_version from allowed)
    order by slot.n
    limit coalesce((select case when rows > 0 then rows + (select pool_beyond from allowed) end from wanted), 0)
    for update skip locked
), pool_seat as materialized (
    select n, row_number() over (order by n) - (select pool_beyond from allowed) as place from pool_free
), picked as materialized (
    select live.id, live.job_id, live.concurrency_key, live.lane, live.due from waiting join horai.instance_live live on live.id = any (array[waiting.id])
    where live.lane = waiting.lane and live.state in (0, 3) and live.due <= statement_timestamp() and (live.expires_at is null or live.expires_at > statement_timestamp())
    order by waiting.urgency, waiting.due, waiting.id
    limit coalesce((
        select case when pool_id is null then (select rows from wanted) else (select count(*) from pool_seat where place > 0) end from allowed), 0)
    for update of live skip locked
), admitted as materialized (
    select horai.admit_keys(array_agg(id), array_agg(job_id), array_agg(concurrency_key), $5::integer[]) as ids from picked
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
), taken as (
    update horai.queue_slot slot set instance_id = row.id, fence = row.fence, node = $1, taken_at = clock_timestamp()
    from (select claimed.*, row_number() over (order by claimed.id) as place from claimed) row join seat on seat.place = row.place
    where slot.queue_id = $3 and slot.n = seat.n
), taken_of_pool as (
    update horai.queue_slot slot set instance_id = row.id, fence = row.fence, node = $1, taken_at = clock_timestamp()
    from (select claimed.*, row_number() over (order by claimed.id) as place from claimed) row join pool_seat on pool_seat.place = row.place
    where slot.queue_id = (select pool_id from allowed) and slot.n = pool_seat.n
)
select * from claimed
union all
select picked.id, picked.job_id, picked.lane, picked.due, null, null, null, null, null, null, null, null, null, null, null, null
from picked where picked.id <> all (array(select unnest(ids) from admitted));

-- name: free_slots
-- tenant: platform
-- Frees the permits of claims whose calls have ended, independent of the state of their rows. `retired = false` repeats the
-- current value: PostgreSQL checks constraints against the row version that it read first, which may be older than the locked one.
with ended as (
    select slot.queue_id, slot.n, slot.retired from horai.queue_slot slot
    join unnest($1::bigint[], $2::bigint[]) as call(instance_id, fence) on slot.instance_id = call.instance_id and slot.fence = call.fence
    where slot.node = $3
    order by slot.queue_id, slot.n for update of slot
), gone as (
    delete from horai.queue_slot slot using ended where slot.queue_id = ended.queue_id and slot.n = ended.n and ended.retired
), freed as (
    update horai.queue_slot slot set instance_id = null, fence = null, node = null, retired = false
    from ended where slot.queue_id = ended.queue_id and slot.n = ended.n and not ended.retired
)
select distinct queue_id from ended;

-- name: slots_adrift
-- tenant: platform
-- Returns the permits of nodes whose rescue is complete: a limit that was set during the rescue found their last rows RUNNING.
select node, instance_id, fence from horai.queue_slot slot
where slot.instance_id is not null and not exists (
    select from horai.node where node.incarnation = slot.node and node.rescued_at is null)
order by node, queue_id, n;

-- name: held_slots
-- tenant: platform
select queue_id, instance_id, fence from horai.queue_slot where node = $1 order by queue_id, n;

-- name: grant_tokens
-- tenant: platform
-- The token bucket runs by the database clock. It fills at the rate, up to the tokens of a tenth of a second, at least one.
with clock as materialized (
    select clock_timestamp() as now
), bucket as materialized (
    select queue.id, clock.now, least(
        greatest(1, queue.rate_count / extract(epoch from queue.rate_per)::double precision * 0.1),
        queue.tokens + greatest(0, extract(epoch from clock.now - queue.refilled_at)::double precision)
            * queue.rate_count / extract(epoch from queue.rate_per)::double precision) as tokens
    from horai.queue cross join clock
    where queue.id = $1 and queue.rate_count is not null
    for no key update of queue
), drawn as (
    select id, now, tokens, least($2::integer, floor(tokens)::integer) as granted from bucket
)
update horai.queue queue set tokens = drawn.tokens - drawn.granted, refilled_at = greatest(queue.refilled_at, drawn.now)
from drawn where queue.id = drawn.id
returning drawn.granted, queue.tokens, queue.rate_count, queue.rate_per;

-- name: return_tokens
-- tenant: platform
-- Returns granted tokens that were not used; tokens above the size of the bucket are lost at the next grant.
update horai.queue set tokens = tokens + $2::integer where id = $1 and rate_count is not null;
