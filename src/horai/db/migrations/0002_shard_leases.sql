-- Ownership in a cluster: who dispatches, triggers and rescues what (docs/concepts/cluster.md).

-- roles: what the node is there for. draining: it is stopping, and owns nothing more. vitals: how it is doing, for the
-- health of the whole cluster; written with every renewal.
alter table horai.node
    add column roles text[] not null default '{api,scheduler,executor}',
    add column draining boolean not null default false,
    add column vitals json;

-- What every beat reads: the living, and the dead that are not rescued yet. All others are history.
create index node_unrescued on horai.node (incarnation) where rescued_at is null;

-- The lease `<duty>:<shard>`. Free without a node; a lease that ran out is as good as free. Every take-over has a new epoch.
create table horai.shard_lease (
    duty text collate "C" not null check (duty in ('dispatch', 'trigger')),
    shard smallint not null,
    node bigint,
    epoch bigint not null default 0,
    lease_until timestamptz,
    primary key (duty, shard),
    constraint shard_lease_held_until check ((node is null) = (lease_until is null))
) with (fillfactor = 50);
insert into horai.shard_lease (duty, shard)
select duty, shard from unnest(array['dispatch', 'trigger']) duty cross join generate_series(0, 31) shard;
