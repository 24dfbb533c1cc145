-- Retention of tenants and jobs (docs/guides/retention.md): each may keep history and dead letters for another time than the process.

-- The times of a tenant (job_id 0) or of a job; null: the time that holds without it. kept_from: history that follows these times is complete
-- from then on. A row stays when its times are removed.
create table horai.retention (
    tenant_id integer not null references horai.tenant,
    job_id bigint not null default 0,
    keep_history interval check (keep_history between interval '24 hours' and interval '87600 hours'),
    keep_dead_letters interval check (keep_dead_letters between interval '24 hours' and interval '87600 hours'),
    kept_from timestamptz not null,
    primary key (tenant_id, job_id)
);
revoke all on horai.retention from public;

-- The time from which on the history of a job (0: of the tenant's other jobs) is complete. It never moves back.
create function horai.kept_from(tenant integer, job bigint) returns timestamptz
language sql stable parallel safe set search_path = pg_catalog as $$
    select case when own.keep_history is not null then own.kept_from else greatest(own.kept_from,
        case when whole.keep_history is not null then whole.kept_from else greatest(whole.kept_from, fold.kept_from) end) end
    from horai.history_fold fold
    left join horai.retention own on own.tenant_id = kept_from.tenant and own.job_id = kept_from.job
    left join horai.retention whole on whole.tenant_id = kept_from.tenant and whole.job_id = 0
$$;
revoke execute on function horai.kept_from from public;

-- The same for every job.
create view horai.job_kept_from as
select job.id as job_id, case when own.keep_history is not null then own.kept_from else greatest(own.kept_from,
    case when whole.keep_history is not null then whole.kept_from else greatest(whole.kept_from, fold.kept_from) end) end as since
from horai.job cross join horai.history_fold fold
left join horai.retention own on own.tenant_id = job.tenant_id and own.job_id = job.id
left join horai.retention whole on whole.tenant_id = job.tenant_id and whole.job_id = 0;

-- Sets the times of a tenant (0) or of a job. A change waits for a drop of history that has read the former times, and a drop waits for it.
create function horai.set_retention(tenant integer, job bigint, history interval, letters interval) returns void
language plpgsql set search_path = pg_catalog as $$
begin
    perform from horai.history_fold where id = 1 for share;
    insert into horai.retention as known (tenant_id, job_id, keep_history, keep_dead_letters, kept_from)
    values (set_retention.tenant, set_retention.job, history, letters, horai.kept_from(set_retention.tenant, set_retention.job))
    on conflict (tenant_id, job_id) do update set keep_history = excluded.keep_history, keep_dead_letters = excluded.keep_dead_letters,
        kept_from = excluded.kept_from;
end $$;
revoke execute on function horai.set_retention from public;

-- Sets the times of a job to those of its definition. Requests of a tenant have no right to write them otherwise.
create function horai.follow_definition(job bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform horai.set_retention(known.tenant_id, known.id, (known.definition ->> 'keepHistory')::interval, (known.definition ->> 'keepDeadLetters')::interval)
    from horai.job known where known.id = follow_definition.job;
end $$;
revoke execute on function horai.follow_definition from public;

-- They follow by whichever path the definition is written.
create function horai.note_retention() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    perform horai.follow_definition(new.id);
    return null;
end $$;
revoke execute on function horai.note_retention from public;

create trigger retention_of_new after insert on horai.job for each row
when (new.definition ->> 'keepHistory' is not null or new.definition ->> 'keepDeadLetters' is not null)
execute function horai.note_retention();
create trigger retention_of_changed after update of definition on horai.job for each row
when (new.definition ->> 'keepHistory' is distinct from old.definition ->> 'keepHistory'
    or new.definition ->> 'keepDeadLetters' is distinct from old.definition ->> 'keepDeadLetters')
execute function horai.note_retention();

-- The condition, on a row `past` of history, that decisions still need it: those of an open dead letter, of a workflow run or a backfill that
-- goes on, and the last slot of a job whose next run counts from its end.
create function horai.needed_instances() returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
    select 'exists (select from horai.dead_letter letter where letter.instance_id = past.id and letter.replay_status = ''NEW'')
        or exists (select from horai.workflow_node node join horai.workflow_run run on run.id = node.run_id
            where node.instance_id = past.id and run.finished_at is null)
        or exists (select from horai.backfill_instance own where own.instance_id = past.id)
        or past.slot >= 0 and exists (select from horai.job where job.id = past.job_id and job.after_finish is not null and job.deleted_at is null)
            and not exists (select from horai.instance_history later where later.job_id = past.job_id and later.slot >= 0
                and (later.fire_time, later.id) > (past.fire_time, past.id))'
$$;
revoke execute on function horai.needed_instances from public;

-- Up to `most` instances of a day of history, with ids above `above`, that may go: those of the given jobs, and of the given tenants except
-- for the jobs `apart`. oldest: the first time at which one of them was created. The keys of the day have to be folded.
create function horai.forgettable_instances(day date, jobs bigint[], tenants integer[], apart bigint[], above bigint, most integer,
    out ids bigint[], out oldest timestamptz)
language plpgsql set search_path = pg_catalog as $$
begin
    if (select folded_before from horai.history_fold where id = 1) < ((day + 1)::timestamp at time zone 'UTC') then
        raise exception 'the keys of % are not folded', day;
    end if;
    execute format('select array_agg(page.id order by page.id), min(page.created_at) from (
            select past.id, past.created_at from horai.instance_history past
            where past.finished_at >= $6 and past.finished_at < $7 and past.id > $4
                and (past.job_id = any ($1) or past.tenant_id = any ($2) and past.job_id <> all ($3)) and not (%s)
            order by past.id limit $5) page', horai.needed_instances())
    into ids, oldest
    using jobs, tenants, apart, above, most, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC';
end $$;
revoke execute on function horai.forgettable_instances from public;

-- Drops a day of a partitioned table, except for rows that are still needed (see needed_instances) and rows of tenants and jobs that are kept
-- longer; in the other tables, the rows of instances that are live or in history. Returns the number of rows that stay. The day keeps its
-- partition if there are any. A day in which nothing may go is left as it is; few rows that go are deleted, and the rest is not copied.
create or replace function horai.drop_history_day(parent text, day date) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    name text := parent || to_char(day, '_YYYYMMDD');
    day_end timestamptz := (day + 1)::timestamp at time zone 'UTC';
    kept_jobs bigint[];
    freed_jobs bigint[];
    kept_tenants integer[];
    needed text;
    going bigint;
    kept bigint;
begin
    if parent not in ('instance_history', 'attempt', 'event', 'note') then
        raise exception '% has no days to drop', parent;
    end if;
    perform from horai.history_fold where id = 1 for no key update;
    if parent = 'instance_history' and (select folded_before from horai.history_fold where id = 1) < day_end then
        raise exception 'the keys of % are not folded', day;
    end if;
    select coalesce(array_agg(own.job_id) filter (where own.job_id <> 0 and day_end > clock_timestamp() - own.keep_history), '{}'),
        coalesce(array_agg(own.job_id) filter (where own.job_id <> 0 and day_end <= clock_timestamp() - own.keep_history), '{}'),
        coalesce(array_agg(own.tenant_id) filter (where own.job_id = 0 and day_end > clock_timestamp() - own.keep_history), '{}')
    into kept_jobs, freed_jobs, kept_tenants from horai.retention own where own.keep_history is not null;
    update horai.retention own set kept_from = day_end
    where own.keep_history is not null and own.kept_from < day_end and day_end <= clock_timestamp() - own.keep_history;
    needed := case when parent = 'instance_history' then
        'past.job_id = any ($1) or past.tenant_id = any ($2) and past.job_id <> all ($3) or ' || horai.needed_instances()
    else
        'past.instance_id is not null and (exists (select from horai.instance_live live where live.id = past.instance_id)
            or exists (select from horai.instance_history history where history.id = past.instance_id))'
    end;
    perform horai.lock_history_day(parent, day);
    execute format('select count(*) filter (where judged.stays), count(*) filter (where not judged.stays)
        from (select coalesce(%s, false) as stays from horai.%I past) judged', needed, name) into kept, going using kept_jobs, kept_tenants, freed_jobs;
    if kept = 0 then
        execute format('drop table horai.%I', name);
        return 0;
    end if;
    if going = 0 then
        return kept;
    end if;
    if going < kept then
        execute format('delete from horai.%I past where not coalesce(%s, false)', name, needed) using kept_jobs, kept_tenants, freed_jobs;
        return kept;
    end if;
    execute format('create table horai.%I (like horai.%I including defaults including constraints)', name || '_kept', parent);
    execute format('insert into horai.%I select past.* from horai.%I past where %s', name || '_kept', name, needed) using kept_jobs, kept_tenants, freed_jobs;
    execute format('drop table horai.%I', name);
    execute format('alter table horai.%I rename to %I', name || '_kept', name);
    execute format('alter table horai.%I attach partition horai.%I for values from (%L) to (%L)', parent, name,
        (day::timestamp at time zone 'UTC')::text, day_end::text);
    if parent = 'instance_history' then
        execute format('create trigger fold_late after insert on horai.%I for each row execute function horai.fold_late_instance()', name);
    end if;
    return kept;
end $$;
