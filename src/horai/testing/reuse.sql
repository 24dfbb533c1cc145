-- Resets a used database, in a hundredth of the time that copying the template takes. Created after the migrations, when
-- the tables hold the rows that every database begins with.

create schema virtual_seed;

create function virtual_seed.keep() returns void
language plpgsql as $$
declare
    known record;
    has_rows boolean;
begin
    for known in select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind = 'r' loop
        execute format('select exists (select from horai.%I)', known.relname) into has_rows;
        if has_rows then
            execute format('create table virtual_seed.%1$I as table horai.%1$I', known.relname);
        end if;
    end loop;
    create table virtual_seed."a sequence" as
    select format('horai.%I', sequencename)::regclass as id, coalesce(last_value, start_value) as value, last_value is not null as is_called
    from pg_sequences where schemaname = 'horai';
    create table virtual_seed."the newest object" as select 0::bigint as id;
    update virtual_seed."the newest object" set id = virtual_seed.newest_object();
end $$;

-- Ids of objects only grow: an object that a test has created, of any kind, has a higher id than all earlier objects.
create function virtual_seed.newest_object() returns bigint language sql volatile as $$
    select greatest(
        (select max(oid::bigint) from pg_class where relpersistence <> 't'), (select max(oid::bigint) from pg_constraint),
        (select max(oid::bigint) from pg_proc), (select max(oid::bigint) from pg_type where typnamespace::regnamespace::text not like 'pg_temp%'),
        (select max(oid::bigint) from pg_trigger), (select max(oid::bigint) from pg_extension),
        (select max(oid::bigint) from pg_namespace where nspname not like 'pg_temp%' and nspname not like 'pg_toast_temp%'))
$$;

-- Tables of the audit log are append-only, and the state of access stays: their triggers are disabled for the deletion, if there are
-- rows.
create function virtual_seed.delete_from(name text) returns void
language plpgsql as $$
declare
    has_rows boolean := true;
    is_kept boolean := name like 'audit%' or name = 'access_state';
begin
    if is_kept then
        execute format('select exists (select from horai.%I)', name) into has_rows;
        if has_rows then
            execute format('alter table horai.%I disable trigger user', name);
        end if;
    end if;
    if has_rows then
        execute format('delete from horai.%I', name);
    end if;
    if is_kept and has_rows then
        execute format('alter table horai.%I enable trigger user', name);
    end if;
end $$;

-- Returns false if the database cannot be reset, because a test has created tables, functions or other objects.
create function virtual_seed.restore() returns boolean
language plpgsql as $$
declare
    known record;
    left_over text[];
begin
    if virtual_seed.newest_object() <> (select id from virtual_seed."the newest object") then
        return false;
    end if;
    left_over := array(select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind = 'r');
    for round in 1 .. 10 loop -- referencing rows must go first: tables that are still referenced wait for the next round
        for known in select unnest(left_over) as name loop
            begin
                perform virtual_seed.delete_from(known.name);
                left_over := array_remove(left_over, known.name);
            exception when foreign_key_violation then
                continue;
            end;
        end loop;
        exit when left_over = '{}';
    end loop;
    left_over := array(select relname from pg_class where relnamespace = 'virtual_seed'::regnamespace and relkind = 'r' and relname not like '% %');
    for round in 1 .. 10 loop
        for known in select unnest(left_over) as name loop
            begin
                execute format('insert into horai.%1$I overriding system value table virtual_seed.%1$I', known.name);
                left_over := array_remove(left_over, known.name);
            exception when foreign_key_violation then
                continue;
            end;
        end loop;
        exit when left_over = '{}';
    end loop;
    perform setval(id, value, is_called) from virtual_seed."a sequence";
    return left_over = '{}';
end $$;

-- Terminates all other connections to this database: the test has ended.
create function virtual_seed.send_away() returns bigint language sql volatile as $$
    select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
$$;

select virtual_seed.keep();
