-- The outbox (docs/guides/events-out.md): events in a final order, and the sinks that they are delivered to.
--
-- Every change of a state writes a row of horai.event, or a history row for a success, in its own statement. These rows are the truth; the
-- outbox puts them in order. One process records them, and only while there is a sink. A row is recorded when every transaction before its
-- own has ended, so no row can follow that belongs before it.

-- The rows to record are found by time. A BRIN index costs an insert next to nothing; `horai.summarize_events` keeps it useful.
create index event_time on horai.event using brin (at) with (pages_per_range = 32, autosummarize = on);
create index instance_history_finished on horai.instance_history using brin (finished_at) with (pages_per_range = 32, autosummarize = on);

create table horai.outbox (
    position bigint primary key,
    event_id text collate "C" not null,
    tenant_id integer not null,
    job_id bigint,
    instance_id bigint,
    at timestamptz not null,
    recorded_at timestamptz not null,
    type text collate "C" not null,
    data json not null
);
create index outbox_tenant on horai.outbox (tenant_id, position);
create index outbox_recorded on horai.outbox using brin (recorded_at) with (pages_per_range = 32, autosummarize = on);

-- The state of the recording. xid: rows of transactions below it are recorded. samples: times at which transactions were not assigned yet,
-- to find the rows of later transactions by time. is_on: events are recorded. held_since: an open transaction keeps events back that
-- happened since then.
create table horai.outbox_cursor (
    id smallint primary key default 1 check (id = 1),
    is_on boolean not null default false,
    xid xid8 not null,
    samples json not null default '[]',
    position bigint not null default 0,
    held_since timestamptz
);
insert into horai.outbox_cursor (xid) values (pg_snapshot_xmin(pg_current_snapshot()));

-- kind: webhook, nats, kafka or log. place: the address, with sealed secrets. types: the types of events to send; null means all.
-- position: the last event that the sink has, or was to be given. status: ACTIVE; PARKED after failures, tried seldom; PAUSED by hand, or
-- by the receiver with 410. failing_since: the first failure after the last success.
create table horai.sink (
    id bigint generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    name text collate "C" not null,
    kind text not null check (kind in ('webhook', 'nats', 'kafka', 'log')),
    place json not null,
    types text[],
    batch integer not null check (batch between 1 and 500),
    position bigint not null,
    status text not null default 'ACTIVE' check (status in ('ACTIVE', 'PARKED', 'PAUSED')),
    delivered bigint not null default 0,
    delivered_at timestamptz,
    failures integer not null default 0,
    failing_since timestamptz,
    last_error text,
    next_try timestamptz,
    version bigint not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    unique (tenant_id, name)
);
revoke all on horai.outbox, horai.outbox_cursor, horai.sink from public;

-- The transaction that inserted a row: its 32-bit id with the epoch of the next id to be assigned.
create function horai.full_xid(inserted xid, next bigint) returns bigint
language sql immutable parallel safe set search_path = pg_catalog as $$
    select next - ((next - inserted::text::bigint) & 4294967295)
$$;

-- The state of an instance after an event; null if the event leaves its state or is of no instance.
create function horai.state_after(kind text) returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
    select case kind
        when 'INSTANCE_DONE' then 'SUCCESS' when 'INSTANCE_FAILED' then 'FAIL' when 'INSTANCE_LOST' then 'FAIL'
        when 'INSTANCE_DEAD' then 'DEAD' when 'INSTANCE_CANCELLED' then 'CANCELLED'
        when 'INSTANCE_RELEASED' then 'INIT' when 'INSTANCE_HELD' then 'INIT' when 'INSTANCE_UNBLOCKED' then 'INIT' end
$$;

-- Records events from now on, if it is not done yet, and returns the position after which a new sink begins. With the rights of the owner: a
-- request may not write the cursor.
create function horai.open_outbox() returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    at_position bigint;
begin
    perform from horai.outbox_cursor where id = 1 for update;  -- the process that closes the outbox waits for the new sink
    update horai.outbox_cursor
    set is_on = true, xid = pg_snapshot_xmin(pg_current_snapshot()),
        samples = json_build_array(json_build_array(clock_timestamp(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint))
    where id = 1 and not is_on;
    select position into at_position from horai.outbox_cursor where id = 1;
    return at_position;
end $$;

-- Lets the indexes by time skip the pages that were written since the last call. With the rights of the owner, as PostgreSQL asks for.
create function horai.summarize_events() returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    part regclass;
begin
    for part in
        select leaf.relid from unnest(array['horai.event_time', 'horai.instance_history_finished']) as parent(name)
        cross join pg_partition_tree(parent.name::regclass) leaf
        where leaf.isleaf order by leaf.relid desc limit 8
    loop
        perform brin_summarize_new_values(part);
    end loop;
end $$;
revoke execute on function horai.open_outbox, horai.summarize_events, horai.full_xid, horai.state_after from public;

create or replace function horai.controls() returns json
language sql stable set search_path = pg_catalog as $$
    select (governor.controls::jsonb || jsonb_build_object('frozenTenants', (
        select jsonb_agg(hold.tenant_id order by hold.tenant_id) from horai.tenant_hold hold
        where hold.kind = 'low-priority' and (hold.expires_at is null or hold.expires_at > clock_timestamp())
    ), 'recordsEvents', (select is_on from horai.outbox_cursor where id = 1)))::json from horai.governor where id = 1
$$;
