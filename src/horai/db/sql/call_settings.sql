-- The queue, the priority and the expiry of one call (docs/decisions/0064).

-- name: place_calls
-- tenant: by instance
-- Gives the instances $1 the queues $2, priorities $3 and expiries ($4 spans, $5 instants) of their calls. $6: the caller's transaction has inserted them.
select instance_id, new_lane, new_due, fault
from horai.place_calls($1::bigint[], $2::text[], $3::smallint[], $4::interval[], $5::timestamptz[], $6);

-- name: expire_waiting
-- tenant: platform
-- moves: INIT | FAIL | BLOCKED -> CANCELLED
-- Ends up to $1 instances that have expired and do not run, the earliest first. A claim takes no expired instance, so none of them starts.
-- Also returns the next expiry of an instance that is left, without an id: it may have passed, if the instance runs or is locked.
with held as materialized (
    select id from horai.instance_live where expires_at <= statement_timestamp() and state in (0, 3, 6)
    order by expires_at limit $1 for update skip locked
), gone as (
    delete from horai.instance_live live using held where live.id = any (array[held.id]) returning live.*
), kept as (
    insert into horai.instance_history ({{carried}}, finished_at, retry_count, events, state, reason, error_code, error_msg)
    select {{carried}}, clock_timestamp(), retry_count, events + 1, 5, $2, error_code, error_msg
    from gone
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events + 1, 'INSTANCE_CANCELLED',
        json_build_object('idemKey', horai.idem_key(job_id, born_for, slot), 'reason', 'EXPIRED', 'expiresAt', expires_at) from gone
)
select id, null::timestamptz as next_at from gone
union all
(select null, live.expires_at from horai.instance_live live
where live.expires_at is not null and not exists (select from held where held.id = live.id) order by live.expires_at limit 1);
