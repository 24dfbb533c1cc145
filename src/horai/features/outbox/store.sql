-- Sinks: definitions for users, and the statements of the delivery.

-- name: list_sinks
-- tenant: $1
select sink.* from horai.sink where tenant_id = $1 and name > $2 order by name limit $3;

-- name: find_sink
-- tenant: $1
select sink.* from horai.sink where tenant_id = $1 and name = $2;

-- name: lock_sink
-- tenant: $1
select sink.* from horai.sink where tenant_id = $1 and name = $2 for update;

-- name: count_sinks
-- tenant: $1
select count(*) from horai.sink where tenant_id = $1;

-- name: insert_sink
-- tenant: $1
-- No row: the name is taken.
insert into horai.sink (tenant_id, name, kind, place, types, batch, position) values ($1, $2, $3, $4, $5, $6, $7)
on conflict do nothing returning sink.*;

-- name: change_sink
-- tenant: $1
-- A changed sink is tried at once.
update horai.sink set kind = $3, place = $4, types = $5, batch = $6, version = version + 1, updated_at = clock_timestamp(),
    next_try = null
where tenant_id = $1 and name = $2 returning sink.*;

-- name: set_sink_status
-- tenant: $1
-- A sink that is resumed begins without failures.
update horai.sink set status = $3, failures = 0, failing_since = null, next_try = null, version = version + 1, updated_at = clock_timestamp()
where tenant_id = $1 and name = $2 returning sink.*;

-- name: rewind_sink
-- tenant: $1
-- Moves the sink back to the first event since $3, if it is past it. Returns how many events it gets again. An event is recorded after it
-- happened, so those recorded since $3 include all that happened since. `offset 0` makes the search begin at the time, not at the oldest event.
with before as materialized (
    select id, position, types from horai.sink where tenant_id = $1 and name = $2 for update
), recent as materialized (
    select position, type from horai.outbox where tenant_id = $1 and recorded_at >= $3 offset 0
), again as materialized (
    select count(*) filter (where before.types is null or recent.type = any (before.types)) as events, min(recent.position) as first
    from before join recent on recent.position <= before.position
), moved as (
    update horai.sink set position = again.first - 1, next_try = null, updated_at = clock_timestamp()
    from before cross join again where sink.id = before.id and again.first is not null
)
select again.events from before cross join again;

-- name: delete_sink
-- tenant: $1
delete from horai.sink where tenant_id = $1 and name = $2 returning id;

-- name: lags_of_sinks
-- tenant: $1
-- How many recorded events each sink still has to get, up to 10,000, and the age in seconds of the oldest that it has not got, or that an open
-- transaction may keep back.
select sink.id, behind.events, greatest(behind.age, extract(epoch from clock_timestamp() - (select held_since from horai.outbox_cursor)), 0)::double precision as age
from horai.sink cross join lateral (
    select count(*) as events, extract(epoch from clock_timestamp() - min(at)) as age from (
        select e.at from horai.outbox e where e.tenant_id = $1 and e.position > sink.position and (sink.types is null or e.type = any (sink.types))
        order by e.position limit 10000
    ) next
) behind
where sink.tenant_id = $1 and sink.id = any ($2::bigint[]);

-- name: sinks_to_serve
-- tenant: platform
-- Sinks that events are delivered to, with the names of their tenants. `has_more`: there are events after its position.
select sink.*, tenant.name as tenant, sink.position < (select position from horai.outbox_cursor where id = 1) as has_more
from horai.sink join horai.tenant on tenant.id = sink.tenant_id
where sink.status <> 'PAUSED';

-- name: sink_delivered
-- tenant: platform
-- The sink $1 has the events up to $3 of the $4 that it was given. Changes nothing if another process has moved the sink, or a user has
-- moved it back or paused it meanwhile. Returns the status before.
update horai.sink set position = $3, delivered = sink.delivered + $4, delivered_at = case when $4 > 0 then clock_timestamp() else sink.delivered_at end,
    status = 'ACTIVE', failures = 0, failing_since = null, last_error = null, next_try = null
from (select id, status from horai.sink where id = $1 for update) before
where sink.id = before.id and sink.position = $2 and before.status <> 'PAUSED'
returning before.status;

-- name: sink_failed
-- tenant: platform
-- Counts a failure. $3 the error, $4 the pause until the next try, $5 whether the receiver wants no more events, $6 the time of failures after
-- which a sink is parked. Returns the status before and after.
update horai.sink set failures = sink.failures + 1, failing_since = coalesce(sink.failing_since, clock_timestamp()), last_error = $3,
    next_try = clock_timestamp() + $4::interval,
    status = case when $5 then 'PAUSED' when sink.failing_since <= clock_timestamp() - $6::interval then 'PARKED' else sink.status end
from (select id, status from horai.sink where id = $1 for update) before
where sink.id = before.id and sink.position = $2 and before.status <> 'PAUSED'
returning before.status as before, sink.status as after;
