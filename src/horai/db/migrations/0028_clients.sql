-- Bind SQL clients to tenants: the login decides which tenant a call may serve, and the setting horai.tenant only chooses
-- among several (docs/guides/sql.md, docs/decisions/0038).

-- jobs: the names of the jobs that the role may use; null for all of the tenant.
create table horai.client (
    role name not null,
    tenant_id integer not null references horai.tenant,
    jobs text[],
    created_at timestamptz not null default clock_timestamp(),
    primary key (role, tenant_id)
);

-- Whether a login is that of the owner of the schema, of a node or of a process with the SDK. Called with the rights of the owner.
create function horai.is_trusted(login name) returns boolean
language sql stable as $$
    select pg_has_role(login, current_user, 'member') or coalesce(pg_has_role(login, to_regrole('horai_engine'), 'member'), false)
$$;

-- The tenant of a call, and the jobs that its login may use there. The owner of the schema, nodes and SDK processes serve every
-- tenant. A tenant that the login may not use is answered like one that does not exist.
create function horai.caller_place(out tenant_id integer, out tenant_name text, out jobs text[])
language plpgsql stable as $$
declare
    wanted text := nullif(current_setting('horai.tenant', true), '');
    bound bigint;
begin
    if horai.is_trusted(session_user) then
        tenant_name := coalesce(wanted, 'default');
        select tenant.id into tenant_id from horai.tenant where tenant.name = tenant_name;
    else
        select client.tenant_id, tenant.name, client.jobs, count(*) over () into tenant_id, tenant_name, jobs, bound
        from horai.client join horai.tenant on tenant.id = client.tenant_id
        where pg_has_role(session_user, to_regrole(quote_ident(client.role)), 'usage') and (wanted is null or tenant.name = wanted)
        order by tenant.name = 'default' desc, client.role = session_user desc limit 1;
        if bound > 1 and wanted is null and tenant_name <> 'default' then
            perform horai.refuse('HR422', format('Role %I may use several tenants, and the call names none.', session_user),
                'Name one: set horai.tenant = ''shop''.', 'tenant');
        end if;
        if tenant_id is null and wanted is null then
            perform horai.refuse('HR404', format('Role %I is bound to no tenant.', session_user),
                'The owner of the schema binds it with the function grant_client (docs/guides/sql.md).', 'tenant');
        end if;
        tenant_name := coalesce(tenant_name, wanted);
    end if;
    if tenant_id is null then
        perform horai.refuse('HR404', format('There is no tenant %L.', left(tenant_name, 128)),
            'The setting horai.tenant names it; without that it is ''default''.', 'tenant');
    end if;
end $$;

create or replace function horai.place_of(reference text) returns horai.wish
language plpgsql as $$
declare
    isolation text := current_setting('transaction_isolation');
    caller record;
    job_name text;
    place horai.wish;
begin
    if isolation in ('repeatable read', 'serializable') then
        perform horai.refuse('HR422',
            format('The transaction is %s; instances are added and cancelled under READ COMMITTED only.', upper(isolation)),
            'What others have committed since it began must be seen. Use a transaction of its own for this.');
    end if;
    caller := horai.caller_place();
    place.tenant_id := caller.tenant_id;
    if reference ~ '^[0-9]{1,18}$' then
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload, job.name
        into place.job_id, place.lane, place.job_payload, job_name
        from horai.job where job.tenant_id = place.tenant_id and job.id = reference::bigint and job.deleted_at is null for key share;
    else
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload, job.name
        into place.job_id, place.lane, place.job_payload, job_name
        from horai.job where job.tenant_id = place.tenant_id and job.name = reference and job.deleted_at is null for key share;
    end if;
    if not found or job_name <> all (caller.jobs) then
        perform horai.refuse('HR404', format('There is no job %L.', left(coalesce(reference, ''), 128)),
            format('`horai jobs list` has the jobs; the tenant asked is %L (setting horai.tenant).', left(caller.tenant_name, 128)), 'job');
    end if;
    return place;
end $$;

-- Following a table. The trigger function belongs to the role that called follow_table, and the session that writes the table is
-- any other. So the clients of a tenant have a function of their own, which only they may execute and which names the tenant.
create function horai.follow_for(client_tenant integer, allowed text[], job text, old_key text, new_key text, payload jsonb) returns void
language plpgsql as $$
begin
    if follow_for.job <> all (allowed) then
        raise exception using errcode = 'insufficient_privilege', message = format('The client may not use the job %L.', left(follow_for.job, 128)),
            hint = 'The owner of the schema allows it with the function grant_client (docs/guides/sql.md).';
    end if;
    perform horai.follow_entity(tenant.name, follow_for.job, old_key, new_key, payload) from horai.tenant where tenant.id = client_tenant;
end $$;

-- The name of the function of clients with these rights.
create function horai.follow_function(tenant_id integer, jobs text[]) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select 'follow_of_' || left(md5(tenant_id || coalesce('/' || jobs::text, '')), 16)
$$;

-- The tenant of the call, and the beginning of the call that triggers of this role make.
create type horai.follower as (tenant text, call text);
create function horai.follow_call(follower name) returns horai.follower
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    caller record := horai.caller_place();
    found horai.follower;
begin
    found.tenant := caller.tenant_name;
    if horai.is_trusted(follower) then
        found.call := format('horai.follow_entity(%L, ', caller.tenant_name);
    else
        select format('horai.%I(', horai.follow_function(client.tenant_id, client.jobs)) into found.call from horai.client
        where client.tenant_id = caller.tenant_id and pg_has_role(follower, to_regrole(quote_ident(client.role)), 'usage')
        order by client.role = follower desc, client.role limit 1;
    end if;
    return found;
end $$;

drop function horai.write_follower(regclass, text, text, text, text, text[]);
create function horai.write_follower(followed regclass, trigger_name text, call text, job text, key_column text, payload_columns text[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    home name := (select nspname from pg_class join pg_namespace on pg_namespace.oid = relnamespace where pg_class.oid = followed);
    follower text := format('%I.%I', home, trigger_name || '_' || left(md5(followed::oid || '/' || current_user), 8));
    replaced regprocedure := (select tgfoid from pg_trigger where tgrelid = followed and tgname = trigger_name and not tgisinternal);
    body text := format(
        'declare old_key text; new_key text; was jsonb; payload jsonb; '
        'begin '
        'if tg_op <> ''INSERT'' then old_key := %s #>> ''{}''; was := %s; end if; '
        'if tg_op <> ''DELETE'' then new_key := %s #>> ''{}''; payload := %s; end if; '
        'if tg_op = ''UPDATE'' and old_key is not distinct from new_key and was is not distinct from payload then return null; end if; '
        'perform %s%L, old_key, new_key, payload); '
        'return null; '
        'end',
        horai.column_json(followed, key_column, 'old'), horai.columns_json(followed, payload_columns, 'old'),
        horai.column_json(followed, key_column, 'new'), horai.columns_json(followed, payload_columns, 'new'), call, job);
begin
    if call is null then
        raise exception using errcode = 'HR404', message = format('Role %I is bound to no tenant.', current_user),
            hint = 'The owner of the schema binds it with the function grant_client (docs/guides/sql.md).', column = 'tenant';
    end if;
    if not has_schema_privilege(home, 'create') then
        raise exception using errcode = 'insufficient_privilege',
            message = format('Role %s may not create the trigger function of %s in schema %s.', current_user, followed, home),
            hint = format('Run as the owner of the schema: grant create on schema %I to %I', home, current_user);
    end if;
    execute format('create or replace function %s() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp '
        'set timezone = ''UTC'' set datestyle = ''ISO'' set intervalstyle = ''postgres'' set extra_float_digits = 1 set array_nulls = on as %L',
        follower, body);
    execute format('revoke all on function %s() from public', follower);
    execute format('create or replace trigger %I after insert or update or delete on %s for each row execute function %s()',
        trigger_name, followed, follower);
    perform horai.drop_follower(replaced) where replaced <> to_regprocedure(follower || '()');
end $$;

create or replace function horai.follower_name(job text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select 'horai_follow_' || left(regexp_replace(job, '[^A-Za-z0-9]', '_', 'g'), 30) || '_' || left(md5(tenant || '/' || job), 8)
    from horai.follow_call(current_user)
$$;

create or replace function horai.follow_table(followed regclass, job text, key_column text, payload_columns text[] default '{}') returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'postgres' set extra_float_digits = 1 set array_nulls = on as $$
declare
    missing text := (
        select string_agg(name, ', ') from unnest(array[key_column] || payload_columns) as name
        where horai.column_json(followed, name, 'source') is null);
    unread text := (
        select string_agg(attname, ', ') from pg_attribute
        where attrelid = followed and attname = any (array[key_column] || payload_columns) and attgenerated = 'v');
    chunk record;
    added bigint := 0;
begin
    if missing is not null then
        raise exception using errcode = 'HR422', message = format('%s has no column %s.', followed, missing),
            hint = 'Name columns of the table as they are spelled in it.', column = 'key_column';
    end if;
    if unread is not null then
        raise exception using errcode = 'HR422', message = format('Triggers cannot read the virtual generated column %s of %s.', unread, followed),
            hint = 'Make the column STORED, or name the columns that it is computed from.', column = 'key_column';
    end if;
    added := horai.add_entities(job, '{}');
    perform horai.write_follower(followed, horai.follower_name(job), call, job, key_column, payload_columns) from horai.follow_call(current_user);
    for chunk in execute format(
        'select array_agg(entity.key) as keys, array_agg(entity.payload::json) as payloads from ('
        'select %s #>> ''{}'' as key, %s as payload, (row_number() over () - 1) / 10000 as part from %s source'
        ') entity where entity.key is not null group by entity.part',
        horai.column_json(followed, key_column, 'source'), horai.columns_json(followed, payload_columns, 'source'), followed)
    loop
        added := added + horai.add_entities(job, chunk.keys, chunk.payloads);
    end loop;
    return added;
end $$;

-- Allow a role to add and cancel instances and entities of a tenant, of all its jobs or of these. A second call replaces the jobs.
drop function horai.grant_client(text);
create function horai.grant_client(role_name text, tenant text default 'default', jobs text[] default null) returns void
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
        'horai.json_of, horai.put_json, horai.enqueue_json, horai.enqueue_many_json, '
        'horai.add_entity, horai.add_entities, horai.remove_entity, horai.follow_table, horai.unfollow_table, '
        'horai.follower_name, horai.follow_call, horai.column_json, horai.columns_json, horai.write_follower, horai.drop_follower '
        'to %I', role_name);
    execute format('create or replace function horai.%I(job text, old_key text, new_key text, payload jsonb) returns void '
        'language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as %L', follower,
        format('begin perform horai.follow_for(%s, %L::text[], job, old_key, new_key, payload); end', bound, jobs));
    execute format('revoke execute on function horai.%I from public', follower);
    execute format('grant execute on function horai.%I to %I', follower, role_name);
end $$;

-- Take the right back. The tables that the role follows for the tenant then refuse writes, until another client follows them.
create function horai.revoke_client(role_name text, tenant text default 'default') returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    held record;
begin
    for held in
        delete from horai.client using horai.tenant owner
        where client.role = role_name and owner.id = client.tenant_id and owner.name = revoke_client.tenant
        returning client.tenant_id, client.jobs
    loop
        execute format('revoke execute on function horai.%I from %I', horai.follow_function(held.tenant_id, held.jobs), role_name);
    end loop;
end $$;

revoke execute on function
    horai.is_trusted, horai.caller_place, horai.follow_for, horai.follow_function, horai.follow_call, horai.write_follower,
    horai.grant_client, horai.revoke_client
from public;

-- Bind the clients of earlier versions to the tenant `default`, and the tables that they follow to their own function.
do $$
declare
    held record;
    followed record;
begin
    for held in
        select distinct pg_get_userbyid(acl.grantee) as client from pg_proc cross join aclexplode(proacl) acl
        where pronamespace = 'horai'::regnamespace and proname = 'put_json' and acl.grantee not in (0, proowner)
            and pg_get_userbyid(acl.grantee) not in ('horai_engine', 'horai_api')
    loop
        perform horai.grant_client(held.client);
        execute format('revoke execute on function horai.follow_entity from %I', held.client);
    end loop;
    for followed in
        select pg_proc.oid, pg_get_userbyid(proowner) as client, tenant.id as tenant_id, tenant.name as tenant
        from pg_trigger join pg_proc on pg_proc.oid = tgfoid
        join horai.tenant on prosrc like '%perform horai.follow_entity(' || replace(quote_literal(tenant.name), '\', '\\') || ', %'
        where tgname like E'horai\\_follow\\_%' and pronamespace <> 'horai'::regnamespace
            and not pg_has_role(proowner, current_user, 'member')
    loop
        perform horai.grant_client(followed.client, followed.tenant);
        execute replace(pg_get_functiondef(followed.oid), format('horai.follow_entity(%L, ', followed.tenant),
            format('horai.%I(', horai.follow_function(followed.tenant_id, null)));
    end loop;
exception when insufficient_privilege then
    raise exception using errcode = 'insufficient_privilege',
        message = format('The trigger function %s of a followed table cannot be replaced: %s', followed.oid::regprocedure, sqlerrm),
        hint = 'Migrate as a superuser, or drop the trigger now and call horai.follow_table again after the migration.';
end $$;
