-- The governor: its state, its history, and the holds of tenants.

-- name: governor_now
-- tenant: platform
-- Returns the state with the health that every live node reported with its last renewal: all that an evaluation needs.
select governor.version, governor.thresholds, governor.memory, clock_timestamp() as now, (
    select coalesce(json_agg(json_build_array(node.name, node.vitals)), '[]') from horai.node
    where rescued_at is null and fenced_at is null and stopped_at is null and lease_until > clock_timestamp() and vitals is not null
) as readings
from horai.governor where governor.id = 1;

-- name: lock_governor
-- tenant: platform
select version from horai.governor where id = 1 for no key update;

-- name: write_governor
-- tenant: platform
-- A notification (`n`) makes every process renew at once and so read the new controls.
update horai.governor set version = version + 1, thresholds = $2, memory = $3, controls = $4
where id = 1 and version = $1
returning version, pg_notify('horai_wake', 'n');

-- name: release_retries
-- tenant: platform
-- Makes up to $1 retries due that the retry limiter or the gate of a host has moved to a later time. A claim asks again.
with held as materialized (
    select id from horai.instance_live
    where retry_count > 0 and state = 0 and due > execute_time and due > clock_timestamp()
    limit $1 for no key update skip locked
), released as (
    update horai.instance_live live set due = clock_timestamp() from held where live.id = held.id returning live.id
)
select count(*) from released;

-- name: set_governed_rate
-- tenant: platform
-- $2 null: the rate is not limited any more. A rate that stays keeps its tokens.
with gone as (
    delete from horai.governed_rate where name = $1 and $2::double precision is null
)
insert into horai.governed_rate (name, per_second) select $1, $2 where $2::double precision is not null
on conflict (name) do update set per_second = excluded.per_second where governed_rate.per_second <> excluded.per_second;

-- name: insert_mode_changes
-- tenant: platform
insert into horai.mode_change (mode, level, is_dry_run, cause)
select * from unnest($1::text[], $2::smallint[], $3::boolean[], $4::json[]);

-- name: list_mode_changes
-- tenant: platform
select id, at, mode, level, is_dry_run, cause from horai.mode_change
where $1::bigint is null or id < $1 order by id desc limit $2;

-- name: forget_mode_changes
-- tenant: platform
delete from horai.mode_change where at < clock_timestamp() - $1::interval;

-- name: hold_every_tenant
-- tenant: platform
-- Orders the transaction against queues that appear and tenants that change.
select horai.hold_tenant(tenant.id) from (select id from horai.tenant order by id for no key update) tenant;

-- name: shut_every_queue
-- tenant: platform
-- Waits for claims under way; no later claim begins before the commit.
select horai.shut_queue(queue.id) from (select id from horai.queue order by id for no key update) queue;

-- name: hold_every_queue
-- tenant: platform
update horai.queue set held = not held where held <> horai.is_dispatch_held(tenant_id) returning id;

-- name: put_tenant_hold
-- tenant: $1
insert into horai.tenant_hold (tenant_id, kind, note, actor, expires_at) values ($1, $2, $3, $4, clock_timestamp() + $5::interval)
on conflict (tenant_id, kind) do update set note = excluded.note, actor = excluded.actor, created_at = excluded.created_at,
    expires_at = excluded.expires_at
returning kind, note, actor, created_at, expires_at, pg_notify('horai_wake', 'n');

-- name: delete_tenant_hold
-- tenant: $1
delete from horai.tenant_hold where tenant_id = $1 and kind = $2 returning kind, pg_notify('horai_wake', 'n');

-- name: tenant_holds
-- tenant: $1
select kind, note, actor, created_at, expires_at from horai.tenant_hold
where tenant_id = $1 and (expires_at is null or expires_at > clock_timestamp()) order by kind;
