-- Rows of a day that had no partition lie in a default partition. They are moved when the day is over.

-- Creates the partition of a day that is over, and moves the rows of that day from the default partition to it. Returns how many; null if
-- the outbox may still have to record the day: moved rows have the id of a new transaction, and it would record them again.
--
-- While rows are copied, writers of the default partition wait, and readers do not. The attachment at the end waits for readers.
create function horai.adopt_strays(parent text, day date) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    name text := parent || to_char(day, '_YYYYMMDD');
    at_column text := case when parent in ('instance_history', 'attempt') then 'finished_at' else 'at' end;
    since timestamptz := day::timestamp at time zone 'UTC';
    before timestamptz := (day + 1)::timestamp at time zone 'UTC';
    moved bigint;
begin
    if parent not in ('instance_history', 'attempt', 'event', 'note') then
        raise exception '% has no days', parent;
    end if;
    if exists (
        select from horai.outbox_cursor where is_on
            and (select min((sample ->> 0)::timestamptz) from json_array_elements(samples) as sample) < before + interval '15 minutes'
    ) then
        return null;
    end if;
    execute format('lock table horai.%I in share row exclusive mode', parent || '_default');
    execute format('create table horai.%I (like horai.%I including defaults including constraints including indexes)', name, parent);
    execute format('insert into horai.%I select * from horai.%I where %I >= $1 and %I < $2', name, parent || '_default', at_column, at_column)
        using since, before;
    get diagnostics moved = row_count;
    execute format('delete from horai.%I where %I >= $1 and %I < $2', parent || '_default', at_column, at_column) using since, before;
    execute format('alter table horai.%I attach partition horai.%I for values from (%L) to (%L)', parent, name, since::text, before::text);
    if parent = 'instance_history' then
        execute format('create trigger fold_late after insert on horai.%I for each row execute function horai.fold_late_instance()', name);
    end if;
    return moved;
end $$;
revoke execute on function horai.adopt_strays from public;
