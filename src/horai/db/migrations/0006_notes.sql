-- What functions say of their work while they are at it: how far they have come, and lines of a log.

-- An observation, not a state: written without a look at the instance, and shown with the attempt whose fence it has. `at`
-- is when it was said, by the database's clock as the process knew it; n counts what the process heard, so that it orders
-- the notes of an attempt. Nothing changes a note once it is there.
create table horai.note (
    instance_id bigint not null,
    fence bigint not null,
    n bigint not null,
    at timestamptz not null,
    node bigint not null,
    attempt integer not null,
    progress double precision,
    message text
) partition by range (at);
-- Unique, so that a batch whose answer was lost can be written again.
create unique index note_said on horai.note (instance_id, fence, n, at);
create table horai.note_default partition of horai.note default;

create or replace function horai.make_partitions(first_day date, days integer) returns integer
language plpgsql set search_path = pg_catalog as $$
declare
    made integer := 0;
    parent text;
    day date;
begin
    foreach parent in array array['instance_history', 'attempt', 'event', 'note'] loop
        for step in 0 .. days - 1 loop
            day := first_day + step;
            if to_regclass(format('horai.%I', parent || to_char(day, '_YYYYMMDD'))) is null then
                begin
                    execute format(
                        'create table horai.%I partition of horai.%I for values from (%L) to (%L)',
                        parent || to_char(day, '_YYYYMMDD'), parent,
                        (day::timestamp at time zone 'UTC')::text, ((day + 1)::timestamp at time zone 'UTC')::text);
                    made := made + 1;
                exception when check_violation then
                    raise warning 'horai.% of % has strays in its default partition', parent, day;
                end;
            end if;
        end loop;
    end loop;
    return made;
end $$;
