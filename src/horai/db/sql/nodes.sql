-- Nodes. Each row is one incarnation of a node, with a lease.

-- name: register_node
-- tenant: platform
-- The notification makes the other nodes renew at once, and give the new node its share of shards. `latest` is the latest time
-- that any node wrote: a clock that is behind it was set back.
insert into horai.node (name, host, pid, version, lease_until, roles)
values ($1, $2, $3, $4, clock_timestamp() + $5::interval, $6)
returning incarnation, pg_notify('horai_wake', 'n'), (
    select max(greatest(known.started_at, known.fenced_at, known.stopped_at, known.rescued_at))
    from (select * from horai.node order by incarnation desc limit 1000) known
) as latest;

-- name: renew_node
-- tenant: platform
-- Renews the lease of the node and of all its shards, and returns the state of the other nodes. No row: the node is fenced or
-- stopped and can never be renewed. Shards are returned as they were before the renewal; `is_kept` marks those that it renewed.
-- A shard that another node takes at the same moment is not marked. The notification probes the listening connections of all
-- nodes. The mark and the snapshot show whether live rows may be new (core/change_marks.py); they are part of the renewal so
-- that an idle node needs no other query; the id of the last event shows whether there are events to record. So are the controls, so that every process obeys the governor even if a notification was lost.
with me as (
    update horai.node set lease_until = clock_timestamp() + $2::interval, vitals = $3::json, draining = $4
    where incarnation = $1 and fenced_at is null and stopped_at is null
    returning incarnation, lease_until
), kept as (
    update horai.shard_lease lease set lease_until = me.lease_until
    from me where lease.node = me.incarnation
    returning lease.duty, lease.shard
), probed as (
    select pg_notify('horai_wake', 'beat:' || incarnation) from me
), clock as materialized (
    select clock_timestamp() as now
)
select clock.now, (
    select json_agg(json_build_object(
        'incarnation', incarnation, 'roles', roles, 'is_draining', draining,
        'is_closed', fenced_at is not null or stopped_at is not null,
        'left', extract(epoch from lease_until - clock.now)))
    from horai.node where rescued_at is null and incarnation <> $1
) as nodes, (
    select json_agg(json_build_object(
        'duty', lease.duty, 'shard', lease.shard, 'node', lease.node, 'epoch', lease.epoch,
        'is_kept', kept.shard is not null, 'left', extract(epoch from lease.lease_until - clock.now)))
    from horai.shard_lease lease left join kept on kept.duty = lease.duty and kept.shard = lease.shard
) as shards, (
    select last_value from horai.change_mark
) as mark, (
    select last_value from horai.event_id_seq
) as last_event, (
    select max(number) from horai.migration
) as schema_number, (
    select horai.controls()
) as controls, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest_open, pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next_id
from me, probed, clock;

-- name: stop_node
-- tenant: platform
-- FOR UPDATE waits for a claim in progress (which locks the row FOR KEY SHARE), so that the rescue finds the rows it claims.
with me as materialized (
    select incarnation from horai.node where incarnation = $1 and stopped_at is null for update
), stopped as (
    update horai.node set stopped_at = clock_timestamp() from me where node.incarnation = me.incarnation
), freed as (
    update horai.shard_lease lease set node = null, lease_until = null from me where lease.node = me.incarnation
)
select pg_notify('horai_wake', 'n') from me;

-- name: find_lost_nodes
-- tenant: platform
-- Fences nodes whose lease has expired, and returns them with all fenced or stopped nodes that may still hold claims.
-- FOR UPDATE skips a node with a claim in progress (which locks the row FOR KEY SHARE); after the fence, the node claims nothing.
-- The notification makes all nodes renew at once: the node that rescues may not be the node that fenced. If the client does not
-- read the long answer of a claim, the claim and its lock never end: this statement ends a session that has waited for its
-- client for more than $2, and a later call fences the node.
with silent as materialized (
    select incarnation from horai.node
    where incarnation <> $1 and rescued_at is null and fenced_at is null and stopped_at is null
        and lease_until < clock_timestamp()
), unread as materialized (
    select count(pg_terminate_backend(pid)) as ended from pg_stat_activity
    where exists (select from silent) and datname = current_database() and usename = current_user
        and application_name in ('horai dispatcher', 'horai inserts') and wait_event = 'ClientWrite' and query_start < clock_timestamp() - $2::interval
), expired as materialized (
    select node.incarnation from unread cross join silent join horai.node on node.incarnation = silent.incarnation
    where node.fenced_at is null and node.stopped_at is null and node.lease_until < clock_timestamp()
    order by node.incarnation for update of node skip locked
), fenced as (
    update horai.node set fenced_at = clock_timestamp() from expired where node.incarnation = expired.incarnation
    returning node.incarnation, pg_notify('horai_wake', 'n')
)
select incarnation, true as is_fenced_now from fenced
union all
select incarnation, false from horai.node where rescued_at is null and (fenced_at is not null or stopped_at is not null)
order by incarnation;

-- name: mark_rescued
-- tenant: platform
update horai.node set rescued_at = clock_timestamp() where incarnation = $1;

-- name: live_nodes
-- tenant: none
select incarnation, name, host, pid, version, started_at, lease_until, roles, draining, vitals from horai.node
where rescued_at is null and fenced_at is null and stopped_at is null and lease_until > clock_timestamp() order by incarnation;

-- name: lost_nodes
-- tenant: none
-- Returns the last $2 nodes that missed their lease since $1. Reads only the newest 1,000 nodes.
select incarnation, name, host, pid, roles, started_at, lease_until, fenced_at, rescued_at from (
    select * from horai.node order by incarnation desc limit 1000
) last
where coalesce(fenced_at, case when stopped_at is null and lease_until < clock_timestamp() then lease_until end) >= $1
order by incarnation desc limit $2;

-- name: health_of_nodes
-- tenant: platform
-- Returns the health that the other live nodes reported with their last renewal.
select incarnation, name, vitals from horai.node
where rescued_at is null and fenced_at is null and stopped_at is null and lease_until > clock_timestamp()
    and vitals is not null and incarnation <> $1
order by incarnation;

-- name: clock
-- tenant: none
select clock_timestamp() as now;

-- name: lock_partitions
-- tenant: platform
-- One node at a time: nodes that start together would create the same table. No queue has the id 0, so the advisory lock is not
-- that of a queue.
select pg_advisory_xact_lock(1215263329, 0);

-- name: make_partitions
-- tenant: platform
-- Months of the audit log are made from this one on, two ahead.
select horai.make_partitions((clock_timestamp() at time zone 'UTC')::date, $1)
    + horai.make_audit_months((clock_timestamp() at time zone 'UTC')::date, 3) as made;

-- name: strays
-- tenant: platform
-- Rows in a default partition mean that the partition of their day was not created in time.
select (select count(*) from (select from horai.instance_history_default limit 1000) h)
    + (select count(*) from (select from horai.event_default limit 1000) e)
    + (select count(*) from (select from horai.attempt_default limit 1000) a)
    + (select count(*) from (select from horai.note_default limit 1000) n)
    + (select count(*) from (select from horai.audit_default limit 1000) u) as rows;
