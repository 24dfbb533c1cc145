-- A virtual time that a test moves, in the database of the test.
--
-- Our statements name clock_timestamp(), statement_timestamp() and now() without their schema. If `virtual_time` comes
-- before pg_catalog on the search_path, they find the functions of this file; so do all other queries there. Created
-- before the migrations, so that the defaults of their columns are bound to these functions as well.

create schema virtual_time;

-- Microseconds since 1970. A sequence, not a table: an open transaction sees the time move, and a rollback keeps it.
create sequence virtual_time.micros minvalue 0;
select setval('virtual_time.micros', 0);

create function virtual_time.clock_timestamp() returns timestamptz language sql volatile
return timestamptz 'epoch' + pg_catalog.pg_sequence_last_value('virtual_time.micros') * interval '1 microsecond';

-- Stable like the functions they replace, so they can be index conditions, and the plans are those of the product.
create function virtual_time.statement_timestamp() returns timestamptz language sql stable return virtual_time.clock_timestamp();
create function virtual_time.transaction_timestamp() returns timestamptz language sql stable return virtual_time.clock_timestamp();
create function virtual_time.now() returns timestamptz language sql stable return virtual_time.clock_timestamp();

create function virtual_time.move_to(moment timestamptz) returns bigint language sql volatile
return setval('virtual_time.micros', (extract(epoch from moment) * 1000000)::bigint);

-- Puts `virtual_time` first on the pinned search_path of functions, which would otherwise use the real time.
create function virtual_time.show_to_functions_of(owner regnamespace) returns void
language plpgsql as $$
declare
    pinned record;
begin
    for pinned in
        select proc.oid::regprocedure as signature, substr(setting, length('search_path=') + 1) as path
        from pg_proc proc cross join unnest(proc.proconfig) as setting
        where proc.pronamespace = owner and setting like 'search_path=%'
    loop
        execute format('alter function %s set search_path = virtual_time, %s', pinned.signature, pinned.path);
    end loop;
end $$;
