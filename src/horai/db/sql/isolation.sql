-- Row-level security: the second wall between tenants (docs/decisions/0038-two-walls-between-tenants.md).
--
-- horai_api     requests of a tenant: only rows of the tenant that the session serves
-- horai_engine  nodes, workers and SQL functions: rows of every tenant, no keys
-- horai_auth    keys and sessions
-- None of them has a login, owns a table or is a superuser. The login of a node is a member of all three.

-- name: missing_memberships
-- tenant: platform
-- Returns which of the roles the current role is not a member of, because they do not exist or were not granted.
select array_agg(wanted.role order by wanted.role) from unnest(array['horai_api', 'horai_auth', 'horai_engine']) as wanted(role)
where not exists (
    select from pg_roles where rolname = wanted.role and pg_has_role($1::name, pg_roles.oid, 'member')
);

-- name: create_roles
-- tenant: platform
-- Another database of the same server may create them at the same time.
do $$
declare
    wanted text;
begin
    foreach wanted in array array['horai_api', 'horai_auth', 'horai_engine'] loop
        if not exists (select from pg_roles where rolname = wanted) then
            begin
                execute format('create role %I nologin', wanted);
            exception when duplicate_object or unique_violation then
                null;
            end;
        end if;
    end loop;
end $$;

-- name: is_isolated
-- tenant: platform
select relrowsecurity from pg_class where oid = 'horai.job'::regclass;

-- name: isolate_tables
-- tenant: platform
-- Gives each role its rights, and every table its policies. A setting that is missing is an error, and not "no rows".
do $$
declare
    held record;
    is_own text;
    rights text;
begin
    grant usage on schema horai to horai_api, horai_engine, horai_auth;
    grant usage on all sequences in schema horai to horai_api, horai_engine;
    grant execute on all functions in schema horai to horai_api, horai_engine;
    revoke execute on function
        horai.grant_client, horai.make_partitions, horai.make_audit_months, horai.drop_audit_month
    from horai_api;
    if to_regprocedure('horai.erase_some(integer, integer)') is not null then  -- since migration 0031
        revoke execute on function horai.erase_some, horai.hold_tenant from horai_api;
    end if;
    for held in
        select relname, exists (
            select from pg_attribute where attrelid = pg_class.oid and attname = 'tenant_id' and not attisdropped
        ) as has_tenant
        from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and not relispartition
    loop
        execute format('revoke all on horai.%I from public, horai_api, horai_engine, horai_auth', held.relname);
        execute format('drop policy if exists of_platform on horai.%I', held.relname);
        execute format('drop policy if exists of_tenant on horai.%I', held.relname);
        execute format('drop policy if exists of_auth on horai.%I', held.relname);
        execute format('alter table horai.%I enable row level security, force row level security', held.relname);
        rights := case when held.relname in ('audit', 'audit_seal', 'audit_anchor', 'migration')
            then 'select, insert' else 'select, insert, update, delete' end;
        if held.relname like 'access\_%' then
            execute format('grant %s on horai.%I to horai_auth', rights, held.relname);
            execute format('create policy of_platform on horai.%I to horai_auth using (true) with check (true)', held.relname);
            continue;
        end if;
        execute format('grant %s on horai.%I to horai_engine', rights, held.relname);
        execute format('create policy of_platform on horai.%I to horai_engine using (true) with check (true)', held.relname);
        is_own := case
            when held.relname = 'tenant' then 'id = current_setting(''horai.tenant_id'')::integer'
            when held.relname = 'client' then null  -- the rights of SQL clients: no request reads or changes them
            when held.relname = 'skip' then 'tenant_id = current_setting(''horai.tenant_id'')::integer or tenant_id is null'
            when held.has_tenant then 'tenant_id = current_setting(''horai.tenant_id'')::integer'
            when held.relname in ('schedule', 'node', 'shard_lease', 'audit_seal', 'audit_anchor', 'audit_clock') then 'true'
        end;
        if is_own is not null then
            execute format('grant %s on horai.%I to horai_api', case
                when held.relname = 'schedule' then 'select, insert, update'
                when held.relname in ('tenant', 'tenant_quota') or not held.has_tenant then 'select'  -- the platform changes them
                -- One column to update: the right that FOR KEY SHARE asks for. No request changes or erases a key.
                when held.relname = 'data_key' then 'select, insert, update (wrapped_at)'
                else rights end, held.relname);
            execute format('create policy of_tenant on horai.%I to horai_api using (%s) with check (%s)', held.relname, is_own, is_own);
        end if;
    end loop;
    grant select, insert, update on horai.tenant to horai_auth;
    create policy of_auth on horai.tenant to horai_auth using (true) with check (true);
end $$;

-- name: merge_tables
-- tenant: platform
-- For a database with a single role: takes the policies out of force.
do $$
declare
    held record;
begin
    for held in
        select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and relrowsecurity
    loop
        execute format('alter table horai.%I no force row level security, disable row level security', held.relname);
    end loop;
end $$;
