-- Time that a test moves by hand, in a database of its own.
--
-- Our statements name clock_timestamp(), statement_timestamp() and now() without their schema. Where `virtual_time` comes
-- before pg_catalog on the search_path, they find the functions of this file, and so does whatever else is asked there.
-- Made before the migrations, so that the defaults of their columns are bound to these as well.

create schema virtual_time;

-- Microseconds since 1970. A sequence and no table: a transaction that is open sees time go by, and rolls none of it back.
create sequence virtual_time.micros minvalue 0;
select setval('virtual_time.micros', 0);

create function virtual_time.clock_timestamp() returns timestamptz language sql volatile
return timestamptz 'epoch' + pg_catalog.pg_sequence_last_value('virtual_time.micros') * interval '1 microsecond';

-- Stable as the ones they stand for: so they are index conditions, and the plans are those of the product.
create function virtual_time.statement_timestamp() returns timestamptz language sql stable return virtual_time.clock_timestamp();
create function virtual_time.transaction_timestamp() returns timestamptz language sql stable return virtual_time.clock_timestamp();
create function virtual_time.now() returns timestamptz language sql stable return virtual_time.clock_timestamp();

create function virtual_time.move_to(moment timestamptz) returns bigint language sql volatile
return setval('virtual_time.micros', (extract(epoch from moment) * 1000000)::bigint);

-- Functions whose search_path is pinned would go by the real time: they look here first, too.
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
