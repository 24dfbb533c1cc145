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

-- name: login_statements
-- tenant: none
-- Returns the statements that create the login of nodes on a server of Horai's own ($1); none if it exists. Users of the server
-- create schemas and tables with this login. The last statements give it the objects that they created as superuser before:
-- all that the current role owns outside of the schema horai, except members of extensions and sequences, which follow their table.
with held as (
    select 'pg_namespace'::regclass as catalog, oid, nspowner as owner, oid as home, 'schema ' || quote_ident(nspname) as object
    from pg_namespace
    union all
    select 'pg_class'::regclass, oid, relowner, relnamespace, 'table ' || oid::regclass
    from pg_class where relkind in ('r', 'p', 'v', 'm', 'f', 'S') and not exists (
        select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and relkind = 'S'
            and refclassid = 'pg_class'::regclass and deptype in ('a', 'i')
    )
    union all
    select 'pg_proc'::regclass, oid, proowner, pronamespace, 'routine ' || oid::regprocedure from pg_proc
    union all
    select 'pg_type'::regclass, oid, typowner, typnamespace, 'type ' || oid::regtype from pg_type
    where typtype in ('d', 'e', 'r') or typtype = 'c' and (select relkind from pg_class where pg_class.oid = typrelid) = 'c'
), of_users as (
    select format('alter %s owner to %I', object, $1::text) as statement
    from held join pg_namespace on pg_namespace.oid = held.home
    where owner = current_user::regrole and nspname not in ('horai', 'information_schema') and nspname not like 'pg\_%' and not exists (
        select from pg_depend where classid = catalog and objid = held.oid and deptype = 'e'
    )
)
select statement from (
    select 1 as step, format('create role %I login', $1::text) as statement
    union all
    select 2, format('grant create on database %I to %I', current_database(), $1::text)
    union all
    select 3, format('grant create on schema public to %I', $1::text) where to_regnamespace('public') is not null
    union all
    select 4, statement from of_users
) needed
where not exists (select from pg_roles where rolname = $1::text) order by step;

-- name: is_isolated
-- tenant: platform
select relrowsecurity from pg_class where oid = 'horai.job'::regclass;

-- name: grant_schema
-- tenant: platform
-- Gives each role its rights on the schema, its sequences and functions.
do $$
begin
    grant usage on schema horai to horai_api, horai_engine, horai_auth;
    grant usage on all sequences in schema horai to horai_api;
    grant usage, select on all sequences in schema horai to horai_engine;
    grant execute on all functions in schema horai to horai_api, horai_engine;
    revoke execute on function
        horai.grant_client, horai.make_partitions, horai.make_audit_months, horai.drop_audit_month
    from horai_api;
    if to_regprocedure('horai.erase_some(integer, integer)') is not null then  -- since migration 0031
        revoke execute on function horai.erase_some, horai.hold_tenant from horai_api;
    end if;
    if to_regprocedure('horai.drop_history_day(text, date)') is not null then  -- since migration 0045
        revoke execute on function horai.watch_history_day, horai.lock_history_day, horai.drop_history_day from horai_api;
    end if;
    if to_regprocedure('horai.adopt_strays(text, date)') is not null then  -- since migration 0050
        revoke execute on function horai.adopt_strays from horai_api;
    end if;
    if to_regprocedure('horai.summarize_events()') is not null then  -- since migration 0039
        revoke execute on function horai.summarize_events from horai_api;
    end if;
end $$;

-- name: isolate_table
-- tenant: platform
-- Gives each role its rights on the table that the setting horai.isolated names, and the table its policies. One table in each
-- transaction: its lock lasts for milliseconds. A setting that is missing is an error, and not "no rows".
do $$
declare
    held record;
    is_own text;
    rights text;
begin
    for held in
        select relname, exists (
            select from pg_attribute where attrelid = pg_class.oid and attname = 'tenant_id' and not attisdropped
        ) as has_tenant
        from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and not relispartition
            and relname = current_setting('horai.isolated')
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
        if held.relname = 'instance_live' and current_setting('server_version_num')::integer >= 170000 then
            execute 'grant maintain on horai.instance_live to horai_engine';  -- for its vacuum; before PostgreSQL 17 only the owner can
        end if;
        execute format('create policy of_platform on horai.%I to horai_engine using (true) with check (true)', held.relname);
        is_own := case
            when held.relname = 'tenant' then 'id = current_setting(''horai.tenant_id'')::integer'
            when held.relname = 'client' then null  -- the rights of SQL clients: no request reads or changes them
            when held.relname = 'skip' then 'tenant_id = current_setting(''horai.tenant_id'')::integer or tenant_id is null'
            when held.has_tenant then 'tenant_id = current_setting(''horai.tenant_id'')::integer'
            when held.relname in ('schedule', 'node', 'shard_lease', 'audit_seal', 'audit_anchor', 'audit_clock', 'governor', 'outbox_cursor', 'history_fold') then 'true'
        end;
        if is_own is not null then
            execute format('grant %s on horai.%I to horai_api', case
                when held.relname = 'schedule' then 'select, insert, update'
                when held.relname in ('tenant', 'tenant_quota', 'outbox', 'archive_file', 'archive_stray', 'retention') or not held.has_tenant then 'select'  -- the platform changes them
                -- One column to update: the right that FOR KEY SHARE asks for. No request changes or erases a key.
                when held.relname = 'data_key' then 'select, insert, update (wrapped_at)'
                else rights end, held.relname);
            execute format('create policy of_tenant on horai.%I to horai_api using (%s) with check (%s)', held.relname, is_own, is_own);
        end if;
        if held.relname = 'tenant' then
            grant select, insert, update on horai.tenant to horai_auth;
            create policy of_auth on horai.tenant to horai_auth using (true) with check (true);
        end if;
    end loop;
end $$;

-- name: grant_views
-- tenant: platform
do $$
declare
    held record;
begin
    for held in  -- views, and the default partitions, whose rows are counted: neither has a policy
        select relname from pg_class where relnamespace = 'horai'::regnamespace
            and (relkind = 'v' or relkind = 'r' and pg_get_expr(relpartbound, oid) = 'DEFAULT')
    loop
        execute format('grant select on horai.%I to horai_engine', held.relname);
    end loop;
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
