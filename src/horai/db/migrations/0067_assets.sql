-- Data assets (docs/guides/assets.md, decision 0068): jobs and workflows update them, and others start when they were updated.

create table horai.asset (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    name text collate "C" not null,
    created_at timestamptz not null default clock_timestamp(),
    unique (tenant_id, name)
);

-- The jobs that produce an asset (role 0), and those that wait for it (role 1). node: the node of the workflow of this job that produces it;
-- empty if the job itself does. Only successes since `since` update the asset.
create table horai.asset_use (
    tenant_id integer not null,
    job_id bigint not null,
    role smallint not null check (role in (0, 1)),
    asset_id bigint not null,
    node text collate "C" not null default '',
    since timestamptz not null default clock_timestamp(),
    primary key (job_id, role, asset_id, node)
);
create index asset_use_of_asset on horai.asset_use (asset_id, role);

-- The jobs that start when assets were updated: all of them, or any. last_instance: the one that was started last. A transaction that starts
-- one locks the row.
create table horai.asset_wait (
    job_id bigint primary key,
    tenant_id integer not null,
    is_any boolean not null,
    last_instance bigint
);

-- One row for each update. job_id and instance_id: the success that made it; null for an update from outside. Each success updates an asset once.
create table horai.asset_update (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    asset_id bigint not null,
    at timestamptz not null default clock_timestamp(),
    job_id bigint,
    instance_id bigint,
    run_id bigint,
    node text collate "C",
    interval_start timestamptz,
    interval_end timestamptz,
    metadata json,
    actor text,
    request_key text collate "C"
);
create unique index asset_update_of_instance on horai.asset_update (asset_id, instance_id) where instance_id is not null;
create unique index asset_update_of_request on horai.asset_update (asset_id, request_key) where request_key is not null;
create index asset_update_newest on horai.asset_update (asset_id, id);
create index asset_update_time on horai.asset_update (at);

-- One row for each update and each job that waits for its asset. instance_id: the instance that was started with it; null until then.
create table horai.asset_delivery (
    job_id bigint not null,
    update_id bigint not null,
    tenant_id integer not null,
    asset_id bigint not null,
    instance_id bigint,
    primary key (job_id, update_id)
);
create index asset_delivery_pending on horai.asset_delivery (job_id, asset_id) where instance_id is null;
create index asset_delivery_of_update on horai.asset_delivery (update_id);

-- Successes are read from the history. samples: times that bound the successes that were not read yet, as in the cursor of the outbox.
create table horai.asset_cursor (
    id smallint primary key check (id = 1),
    samples json not null default '[]'
);
insert into horai.asset_cursor (id) values (1);
revoke all on horai.asset, horai.asset_use, horai.asset_wait, horai.asset_update, horai.asset_delivery, horai.asset_cursor from public;

-- Every update reaches the jobs that wait for it, in the transaction that makes it. The wake is sent with the commit. With the rights of the
-- owner: a transaction of a request writes it, or one of a user.
create function horai.deliver_assets() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into horai.asset_delivery (job_id, update_id, tenant_id, asset_id)
    select waits.job_id, fresh.id, fresh.tenant_id, fresh.asset_id
    from fresh join horai.asset_use waits on waits.asset_id = fresh.asset_id and waits.role = 1 and waits.tenant_id = fresh.tenant_id;
    if found and current_setting('horai.sql_wakeup', true) is distinct from 'poll' then
        perform pg_notify('horai_wake', 'u');
    end if;
    return null;
end $$;
revoke execute on function horai.deliver_assets from public;
create trigger asset_is_updated after insert on horai.asset_update
referencing new table as fresh for each statement execute function horai.deliver_assets();

-- Record an update from outside of an asset of the tenant. No row: there is no such asset. A second call with the same once_key stores nothing
-- and returns the first update.
create function horai.note_asset_update(tenant integer, asset_name text, content json, begins timestamptz, ends timestamptz, by_actor text,
    once_key text, out update_id bigint, out is_new boolean)
returns setof record language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    found_id bigint := (select known.id from horai.asset known where known.tenant_id = tenant and known.name = asset_name);
begin
    if found_id is null then
        return;
    end if;
    insert into horai.asset_update (tenant_id, asset_id, interval_start, interval_end, metadata, actor, request_key)
    values (tenant, found_id, begins, ends, content, by_actor, once_key)
    on conflict (asset_id, request_key) where request_key is not null do nothing
    returning id into update_id;
    is_new := update_id is not null;
    if not is_new then
        select earlier.id into update_id from horai.asset_update earlier where earlier.asset_id = found_id and earlier.request_key = once_key;
    end if;
    return next;
end $$;
revoke execute on function horai.note_asset_update from public;

-- The same in the caller's transaction: the asset is updated when it commits. Returns the id of the update.
create function horai.update_asset_json(asset text, metadata json, interval_start timestamptz, interval_end timestamptz, idempotency_key text)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    caller record := horai.caller_place();
    made record;
begin
    if octet_length(metadata::text) > 4096 then
        perform horai.refuse('HR422', 'metadata: is longer than 4096 bytes.', 'Keep the data elsewhere and send a reference.', 'metadata');
    end if;
    if (interval_start is null) <> (interval_end is null) or interval_end < interval_start then
        perform horai.refuse('HR422', 'interval: needs a start and an end that is not before it.', 'Give both times, or none.', 'interval');
    end if;
    if length(idempotency_key) not between 1 and 255 then
        perform horai.refuse('HR422', 'idempotency_key: is not between 1 and 255 characters long.', 'Use a UUID.', 'idempotency_key');
    end if;
    if caller.jobs is not null then
        perform horai.refuse('HR422', format('Role %I may use only some jobs, and an asset belongs to no job.', session_user),
            'The owner of the schema calls horai.grant_client without jobs.', 'asset');
    end if;
    select * into made from horai.note_asset_update(caller.tenant_id, asset, metadata, interval_start, interval_end, session_user::text, idempotency_key);
    if made.update_id is null then
        perform horai.refuse('HR404', format('There is no asset %L.', left(coalesce(asset, ''), 128)),
            'Declare it with `produces` or `when` of a job or a workflow first.', 'asset');
    end if;
    return made.update_id;
end $$;
revoke execute on function horai.update_asset_json from public;

create function horai.update_asset(asset text, metadata anycompatible default null::text, interval_start timestamptz default null,
    interval_end timestamptz default null, idempotency_key text default null) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return horai.update_asset_json(asset, horai.json_of(metadata), interval_start, interval_end, idempotency_key);
end $$;
revoke execute on function horai.update_asset from public;

-- The assets that a node of a run updates with its success; null: none.
alter table horai.workflow_node add column produces text[];

-- Allow a role to add, cancel and signal instances of a tenant, of all its jobs or of these, and to update its assets. A second call replaces the jobs.
create or replace function horai.grant_client(role_name text, tenant text default 'default', jobs text[] default null) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    bound integer := (select id from horai.tenant owner where owner.name = grant_client.tenant);
    follower text := horai.follow_function(bound, jobs);
begin
    if bound is null then
        perform horai.refuse('HR404', format('There is no tenant %L.', left(tenant, 128)), '`horai tenants list` has the tenants.', 'tenant');
    end if;
    perform horai.revoke_client(role_name, tenant);
    insert into horai.client (role, tenant_id, jobs) values (role_name, bound, grant_client.jobs);
    execute format('grant usage on schema horai to %I', role_name);
    execute format('grant execute on function horai.put_instance, horai.enqueue, horai.enqueue_many, horai.cancel_instance, '
        'horai.json_of, horai.put_json, horai.enqueue_json, horai.enqueue_many_json, horai.signal, horai.signal_json, horai.record_step, '
        'horai.put_keeping_steps, horai.put_keeping_steps_json, horai.enqueue_unique, horai.enqueue_debounced, horai.enqueue_calls_json, '
        'horai.enqueue_keyed, horai.set_concurrency_keys, horai.enqueue_with, horai.set_call_options, '
        'horai.add_entity, horai.add_entities, horai.remove_entity, horai.follow_table, horai.unfollow_table, '
        'horai.follower_name, horai.follow_call, horai.column_json, horai.columns_json, horai.write_follower, horai.drop_follower, '
        'horai.update_asset, horai.update_asset_json to %I', role_name);
    execute format('create or replace function horai.%I(job text, old_key text, new_key text, payload jsonb) returns void '
        'language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as %L', follower,
        format('begin perform horai.follow_for(%s, %L::text[], job, old_key, new_key, payload); end', bound, jobs));
    execute format('revoke execute on function horai.%I from public', follower);
    execute format('grant execute on function horai.%I to %I', follower, role_name);
end $$;

-- online: grants on functions that no session uses yet
do $$
declare
    held record;
begin
    for held in select distinct role from horai.client where to_regrole(quote_ident(role)) is not null loop
        execute format('grant execute on function horai.update_asset, horai.update_asset_json to %I', held.role);
    end loop;
end $$;
