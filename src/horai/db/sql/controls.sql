-- The rates that the governor limits (core/controls.py). The controls themselves come with each renewal of a node's lease.

-- name: grant_governed
-- tenant: platform
-- Takes up to $2 tokens of the rate $1. The bucket fills by the database clock, up to the tokens of a second, at least one. No row: the
-- rate is not limited any more.
with clock as materialized (
    select clock_timestamp() as now
), bucket as materialized (
    select rate.name, rate.per_second, clock.now, least(
        greatest(1, rate.per_second),
        rate.tokens + greatest(0, extract(epoch from clock.now - rate.refilled_at)::double precision) * rate.per_second) as tokens
    from horai.governed_rate rate cross join clock
    where rate.name = $1
    for no key update of rate
), drawn as (
    select name, now, tokens, least($2::integer, floor(tokens)::integer) as granted from bucket
)
update horai.governed_rate rate set tokens = drawn.tokens - drawn.granted, refilled_at = greatest(rate.refilled_at, drawn.now)
from drawn where rate.name = drawn.name
returning drawn.granted, rate.tokens, rate.per_second;

-- name: return_governed
-- tenant: platform
-- Returns granted tokens that were not used; tokens above the size of the bucket are lost at the next grant.
update horai.governed_rate set tokens = tokens + $2::integer where name = $1;

-- name: is_backfill_closed
-- tenant: $1
-- Whether new backfills of the tenant are refused: by the governor, or by a hold of the tenant.
select coalesce((select (controls ->> 'backfillClosed')::boolean from horai.governor where id = 1), false) or exists (
    select from horai.tenant_hold where tenant_id = $1 and kind = 'backfill' and (expires_at is null or expires_at > clock_timestamp())
) as is_closed;

-- name: current_controls
-- tenant: none
select horai.controls() as controls;

-- name: modes_in_force
-- tenant: none
-- An override says since when it forces its mode, otherwise the rule does.
select mode.name, coalesce(
    governor.memory -> 'overrides' -> mode.name ->> 'at', governor.memory -> 'tracks' -> mode.name ->> 'since')::timestamptz as since
from horai.governor cross join lateral json_array_elements_text(coalesce(governor.controls -> 'modes', '[]'::json)) as mode(name)
where governor.id = 1 and mode.name <> 'NORMAL';

-- name: holds_in_force
-- tenant: $1
-- The pauses and freezes that apply to the tenant: those of the platform on all tenants or on this one, then its own.
with hold as (
    select true as is_of_platform, placed.what, (placed.told ->> 'at')::timestamptz as since,
        (placed.told ->> 'expires_at')::timestamptz as expires_at, placed.told ->> 'note' as note, placed.told ->> 'actor' as actor
    from horai.governor cross join lateral (
        select 'dispatch' as what, governor.memory -> 'pause' as told
        union all
        select frozen.key, frozen.value from json_each(coalesce(governor.memory -> 'freezes', '{}'::json)) as frozen
    ) placed
    where governor.id = 1 and json_typeof(placed.told) = 'object'
    union all
    select true, 'dispatch', paused_at, null, null, null from horai.tenant where id = $1 and paused_at is not null
    union all
    select false, kind, created_at, expires_at, note, actor from horai.tenant_hold where tenant_id = $1
)
select is_of_platform, what, since, expires_at, note, actor from hold
where expires_at is null or expires_at > clock_timestamp() order by is_of_platform desc, what, since;
