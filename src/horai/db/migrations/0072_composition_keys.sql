-- Idempotency keys of compositions (docs/guides/calls.md, docs/decisions/0075).

-- Take the key of a composition: form is the name of its workflow, content the payload of its run. is_first: the key was free, and the caller binds
-- it to the instance that it inserts. Otherwise first_instance is the run that the key has started, and is_same says whether it was this
-- composition; both are null if the tenant has as many keys as are kept. Waits for another transaction with the same key.
create function horai.take_composition_key(tenant integer, once_key text, form text, content json,
    out is_first boolean, out first_instance bigint, out is_same boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    digest bytea := sha256(convert_to(form || chr(10) || coalesce(content::jsonb::text, ''), 'UTF8'));
begin
    insert into horai.idempotency_key (tenant_id, scope, key, request_hash)
    select tenant, 'compose', once_key, digest
    where not exists (select from horai.idempotency_load load where load.tenant_id = tenant and (load.keys >= 10000000 or load.bytes >= 4294967296))
    on conflict (tenant_id, scope, key) do nothing;
    is_first := found;
    if not is_first then
        select earlier.instance_id, earlier.request_hash = digest into first_instance, is_same from horai.idempotency_key earlier
        where earlier.tenant_id = tenant and earlier.scope = 'compose' and earlier.key = once_key;
    end if;
end $$;
revoke execute on function horai.take_composition_key from public;

create function horai.bind_composition_key(tenant integer, once_key text, to_instance bigint) returns void
language sql volatile set search_path = pg_catalog, pg_temp
begin atomic
    update horai.idempotency_key set job_id = live.job_id, instance_id = live.id
    from horai.instance_live live
    where idempotency_key.tenant_id = tenant and scope = 'compose' and idempotency_key.key = once_key and live.id = to_instance;
end;
revoke execute on function horai.bind_composition_key from public;

create type horai.started_composition as (instance_id bigint, is_new boolean);

-- Start a composition whose form is defined, in the caller's transaction: it runs when that commits. workflow: the name of the form. With an
-- idempotency_key the first call starts it, and later calls return the same run (is_new is false).
create function horai.start_composition(workflow text, payload json, execute_time timestamptz, idempotency_key text)
returns horai.started_composition
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    caller record := horai.caller_place();
    taken record;
    made_id bigint;
begin
    if length(idempotency_key) not between 1 and 255 then
        perform horai.refuse('HR422', 'idempotency_key: is not between 1 and 255 characters long.', 'Use a UUID.', 'idempotency_key');
    end if;
    payload := horai.checked_payload(payload);
    if idempotency_key is not null then
        taken := horai.take_composition_key(caller.tenant_id, idempotency_key, workflow, payload);
        if not taken.is_first then
            if taken.is_same is null then
                perform horai.refuse('HR422', 'idempotency_key: the tenant has as many keys as Horai keeps.', 'Keys expire after some days.',
                    'idempotency_key');
            elsif not taken.is_same then
                perform horai.refuse('HR422', format('idempotency_key: %L has started another composition.', left(idempotency_key, 128)),
                    'Use a new key for other jobs, another order or other arguments.', 'idempotency_key');
            end if;
            return row(taken.first_instance, false)::horai.started_composition;
        end if;
    end if;
    made_id := (horai.enqueue_json(workflow, payload, execute_time)).instance_id;
    if idempotency_key is not null then
        perform horai.bind_composition_key(caller.tenant_id, idempotency_key, made_id);
    end if;
    return row(made_id, true)::horai.started_composition;
end $$;
revoke execute on function horai.start_composition from public;

-- Allow a role to add, cancel and signal instances of a tenant, of all its jobs or of these, to start compositions and to update assets. A second
-- call replaces the jobs.
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
        'horai.update_asset, horai.update_asset_json, horai.start_composition to %I', role_name);
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
        execute format('grant execute on function horai.start_composition to %I', held.role);
    end loop;
end $$;
