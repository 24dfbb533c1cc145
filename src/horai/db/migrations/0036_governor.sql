-- The governor (docs/guides/governor.md, docs/decisions/0044-one-document-of-controls.md): thresholds that limit dispatch by themselves,
-- and holds that operators set by hand.

-- One row. memory: the modes with their causes, overrides and holds; controls: what every process obeys, derived from the memory by the
-- transaction that writes it. A writer compares the version, so a process that was stopped for long changes nothing by old figures.
create table horai.governor (
    id smallint primary key check (id = 1),
    version bigint not null default 1,
    thresholds json not null default '{}',
    memory json not null default '{}',
    controls json not null default '{}'
) with (fillfactor = 50);
insert into horai.governor (id) values (1);

-- The rates that controls limit, as token buckets by the database clock: all processes together keep within them.
create table horai.governed_rate (
    name text primary key,
    per_second double precision not null check (per_second > 0),
    tokens double precision not null default 0,
    refilled_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- Every entry into and exit from a mode, also those that a dry run would have made. level: 0 when the mode was left.
create table horai.mode_change (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    mode text not null,
    level smallint not null,
    is_dry_run boolean not null,
    cause json not null
);
create index mode_change_at on horai.mode_change (at);

-- Holds that a tenant puts on itself. kind: 'dispatch' no instance starts; 'low-priority' none of low priority does; 'backfill' no
-- backfill begins. Those of the platform are in the state of the governor.
create table horai.tenant_hold (
    tenant_id integer not null references horai.tenant,
    kind text not null check (kind in ('dispatch', 'low-priority', 'backfill')),
    note text,
    actor text not null,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz,
    primary key (tenant_id, kind)
);
revoke all on horai.governor, horai.governed_rate, horai.mode_change, horai.tenant_hold from public;

-- What every process obeys now, as JSON. A hold that has expired counts no longer.
create function horai.controls() returns json
language sql stable set search_path = pg_catalog as $$
    select (governor.controls::jsonb || jsonb_build_object('frozenTenants', (
        select jsonb_agg(hold.tenant_id order by hold.tenant_id) from horai.tenant_hold hold
        where hold.kind = 'low-priority' and (hold.expires_at is null or hold.expires_at > clock_timestamp())
    )))::json from horai.governor where id = 1
$$;

-- Whether the dispatch of a tenant is held: by the platform, for this tenant or for all, or by the tenant itself. With the rights of the
-- owner: a request may not read the holds of the platform.
create function horai.is_dispatch_held(tenant integer) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select exists (select from horai.tenant t where t.id = tenant and t.paused_at is not null)
        or exists (select from horai.tenant_hold hold where hold.tenant_id = tenant and hold.kind = 'dispatch')
        or exists (select from horai.governor where id = 1 and memory ->> 'pause' is not null)
$$;

create or replace function horai.hold_new_queue() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    perform horai.share_tenant(new.tenant_id);
    new.held := horai.is_dispatch_held(new.tenant_id);
    if not new.is_pool then
        new.pool_id := (select id from horai.queue where tenant_id = new.tenant_id and is_pool and max_concurrency is not null);
    end if;
    return new;
end $$;

revoke execute on function horai.controls, horai.is_dispatch_held from public;
