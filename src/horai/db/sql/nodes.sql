-- Nodes are incarnations with a lease.

-- name: register_node
insert into horai.node (name, host, pid, version, lease_until)
values ($1, $2, $3, $4, clock_timestamp() + $5::interval)
returning incarnation, clock_timestamp() as now;

-- name: renew_node
-- Zero rows: fenced or stopped, never to be renewed.
update horai.node set lease_until = clock_timestamp() + $2::interval
where incarnation = $1 and fenced_at is null and stopped_at is null
returning clock_timestamp() as now;

-- name: stop_node
-- FOR UPDATE waits for a claim under way (it holds the row FOR KEY SHARE): what it claims is there for the rescue to find.
with me as materialized (
    select incarnation from horai.node where incarnation = $1 and stopped_at is null for update
)
update horai.node set stopped_at = clock_timestamp() from me where node.incarnation = me.incarnation;

-- name: fence_expired_nodes
-- FOR UPDATE waits for claims under way (they hold the row FOR KEY SHARE); after it they claim nothing.
with expired as materialized (
    select incarnation from horai.node
    where incarnation <> $1 and fenced_at is null and stopped_at is null and lease_until < clock_timestamp()
    order by incarnation for update skip locked
)
update horai.node set fenced_at = clock_timestamp() from expired where node.incarnation = expired.incarnation
returning node.incarnation;

-- name: nodes_to_rescue
select incarnation from horai.node where rescued_at is null and (fenced_at is not null or stopped_at is not null) order by incarnation;

-- name: mark_rescued
update horai.node set rescued_at = clock_timestamp() where incarnation = $1;

-- name: live_nodes
select incarnation, name, host, pid, version, started_at, lease_until from horai.node
where fenced_at is null and stopped_at is null and lease_until > clock_timestamp() order by incarnation;

-- name: clock
select clock_timestamp() as now;

-- name: make_partitions
select horai.make_partitions((clock_timestamp() at time zone 'UTC')::date, $1) as made;

-- name: strays
-- Rows in a default partition mean that nobody made partitions in time.
select (select count(*) from (select from horai.instance_history_default limit 1000) h)
    + (select count(*) from (select from horai.event_default limit 1000) e)
    + (select count(*) from (select from horai.attempt_default limit 1000) a) as rows;
