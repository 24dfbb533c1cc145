-- The outbox: events in a final order. One process records at a time; the lock on the cursor orders two of them.

-- name: lock_outbox
-- tenant: platform
-- Locks the cursor until the end of the transaction. `clock` is taken after the lock.
select is_on, xid::text::bigint as xid, samples::text as samples, position, clock_timestamp() as now,
    exists (select from horai.sink) as has_sinks
from horai.outbox_cursor where id = 1 for update;

-- name: record_events
-- tenant: platform
-- Records the rows of transactions from $1 up to the oldest open one, of which none is older than $2, after the position $3.
--
-- A transaction that began early may have written to an instance after one that began later. If the later one is not final yet, the rows of
-- the early one wait for it: `bound` is the first such transaction. Within an instance, events are in the order of `seq`, also if the clock
-- was set back between them. Successes have no row of their own: the history row is their event, and their last one.
with snapshot as materialized (
    select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest_open, pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next_id
), seen as materialized (
    select 'e' || event.id as event_id, event.tenant_id, event.job_id, event.instance_id, coalesce(event.seq, 2147483647) as seq,
        event.at, event.kind, event.data::jsonb as data, horai.full_xid(event.xmin, snapshot.next_id) as xid, null::text as key, event.id as tie
    from horai.event cross join snapshot
    where event.at >= $2 and snapshot.oldest_open > $1::bigint and horai.full_xid(event.xmin, snapshot.next_id) >= $1::bigint
    union all
    select 'i' || done.id, done.tenant_id, done.job_id, done.id, done.events + 1, done.finished_at, 'INSTANCE_DONE',
        jsonb_build_object('idemKey', horai.idem_key(done.job_id, done.born_for, done.slot), 'attempt', done.attempt,
            'retryCount', done.retry_count, 'fireTime', done.fire_time, 'executeTime', done.execute_time,
            'startedAt', done.claimed_at, 'finishedAt', done.finished_at),
        horai.full_xid(done.xmin, snapshot.next_id), done.key, done.id
    from horai.instance_history done cross join snapshot
    where done.finished_at >= $2 and done.state = 2 and snapshot.oldest_open > $1::bigint
        and horai.full_xid(done.xmin, snapshot.next_id) >= $1::bigint
), bound as materialized (
    select min(early.xid) as xid
    from seen early join seen late on late.instance_id = early.instance_id and late.seq < early.seq
    cross join snapshot
    where early.xid < snapshot.oldest_open and late.xid >= snapshot.oldest_open
), horizon as materialized (
    select greatest($1::bigint, least(snapshot.oldest_open, coalesce(bound.xid, snapshot.oldest_open))) as xid, snapshot.next_id
    from snapshot cross join bound
), fresh as materialized (
    select seen.*, case when seen.instance_id is null then seen.at
        else max(seen.at) over (partition by seen.instance_id order by seen.seq, seen.tie rows unbounded preceding) end as placed_at
    from seen cross join horizon where seen.xid < horizon.xid
), recorded as (
    insert into horai.outbox (position, event_id, tenant_id, job_id, instance_id, at, recorded_at, type, data)
    select $3::bigint + row_number() over (order by fresh.placed_at, fresh.instance_id, fresh.seq, fresh.tie),
        fresh.event_id, fresh.tenant_id, fresh.job_id, fresh.instance_id, fresh.at, clock_timestamp(),
        'horai.' || lower(regexp_replace(fresh.kind, '_', '.')),
        (jsonb_strip_nulls(jsonb_build_object('job', job.name, 'jobId', fresh.job_id::text, 'instanceId', fresh.instance_id::text,
            'key', coalesce(fresh.key, named.key), 'state', horai.state_after(fresh.kind))) || coalesce(fresh.data, '{}'))::json
    from fresh
    left join horai.job on job.id = fresh.job_id
    left join lateral (
        select live.key from horai.instance_live live where live.id = fresh.instance_id
        union all
        select ended.key from horai.instance_history ended
        where ended.id = fresh.instance_id and ended.finished_at >= fresh.at - interval '1 minute'
        limit 1
    ) named on fresh.key is null and fresh.instance_id is not null and fresh.kind <> 'INSTANCE_DONE'
    returning position
)
select horizon.xid as horizon, horizon.next_id, (select count(*) from recorded) as recorded, clock_timestamp() as now from horizon;

-- name: move_outbox
-- tenant: platform
update horai.outbox_cursor set xid = $1::text::xid8, samples = $2::json, position = $3, held_since = $4 where id = 1;

-- name: open_outbox
-- tenant: none
select horai.open_outbox();

-- name: close_outbox
-- tenant: platform
-- Stops the recording if there is no sink. The caller has locked the cursor with an earlier statement, so that this one sees every sink that
-- was created before; one that is created later waits for the lock and opens the outbox again.
update horai.outbox_cursor set is_on = false where id = 1 and is_on and not exists (select from horai.sink);

-- name: summarize_events
-- tenant: platform
select horai.summarize_events();

-- name: read_outbox
-- tenant: $1
-- The events of the tenant after the position $2, in order.
select position, event_id, tenant_id, job_id, instance_id, at, type, data::text as data
from horai.outbox where tenant_id = $1 and position > $2 and ($3::text[] is null or type = any ($3)) order by position limit $4;

-- name: newest_position
-- tenant: platform
select position, clock_timestamp() as now from horai.outbox_cursor where id = 1;

-- name: trim_outbox
-- tenant: platform
-- Deletes up to $2 of the oldest events, if they were recorded before $1.
with old as materialized (
    select position from horai.outbox where recorded_at < $1 order by position limit $2
)
delete from horai.outbox using old where outbox.position = old.position;
