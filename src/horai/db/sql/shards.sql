-- Leases of shards. renew_node (nodes.sql) renews them; the statements here take them and give them back.

-- name: take_shards
-- tenant: platform
-- Takes only shards that are free or whose lease has expired, and only for a node whose own lease is valid. The new lease ends
-- with that of the node and has a new epoch.
with me as materialized (
    select incarnation, lease_until from horai.node
    where incarnation = $1 and fenced_at is null and stopped_at is null and lease_until > clock_timestamp()
    for key share
), free as materialized (
    select lease.duty, lease.shard from horai.shard_lease lease
    join unnest($2::text[], $3::smallint[]) as wanted(duty, shard) on wanted.duty = lease.duty and wanted.shard = lease.shard
    where lease.node is null or lease.lease_until < clock_timestamp()
    order by lease.duty, lease.shard for update of lease skip locked
)
update horai.shard_lease lease set node = me.incarnation, epoch = lease.epoch + 1, lease_until = me.lease_until
from me, free where lease.duty = free.duty and lease.shard = free.shard
returning lease.duty, lease.shard, lease.epoch;

-- name: give_back_shards
-- tenant: platform
-- Frees only shards that the node still holds under that epoch. The notification makes the other nodes renew at once and take
-- their share.
with given as (
    update horai.shard_lease lease set node = null, lease_until = null
    from unnest($2::text[], $3::smallint[], $4::bigint[]) as back(duty, shard, epoch)
    where lease.duty = back.duty and lease.shard = back.shard and lease.epoch = back.epoch and lease.node = $1
    returning lease.shard
)
select pg_notify('horai_wake', 'n') from given limit 1;

-- name: shard_leases
-- tenant: none
-- A lease that has expired is shown without a node.
select lease.duty, lease.shard, node.incarnation, node.name, lease.epoch,
    case when node.incarnation is not null then lease.lease_until end as lease_until
from horai.shard_lease lease
left join horai.node on node.incarnation = lease.node and lease.lease_until > clock_timestamp()
order by lease.duty, lease.shard;
