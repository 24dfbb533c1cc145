-- Retention: history is dropped by days, and what decisions need of it is kept in a compact table.

-- folded_before: the past of keys that ended before this time is in key_past; later ends are read from history. kept_from: history is
-- complete from this time on.
create table horai.history_fold (
    id smallint primary key default 1 check (id = 1),
    folded_before timestamptz not null default '-infinity',
    kept_from timestamptz not null default '-infinity'
);
insert into horai.history_fold default values;
revoke all on horai.history_fold from public;

-- Tells equal payloads from others without keeping them.
create function horai.payload_hash(payload json) returns bytea
language sql immutable parallel safe set search_path = pg_catalog as $$
    select substring(sha256(convert_to(payload::text, 'UTF8')) from 1 for 16)
$$;
revoke execute on function horai.payload_hash from public;

-- The past of a key, after its instances have left history. The columns from last_id on are those of its last instance.
-- dead_id: its dead instance with an open dead letter.
create table horai.key_past (
    tenant_id integer not null,
    attempt integer not null,
    retry_count integer not null,
    job_id bigint not null,
    version bigint,
    fence bigint not null,
    dead_id bigint,
    last_id bigint not null,
    fire_time timestamptz not null,
    execute_time timestamptz not null,
    born_for timestamptz not null,
    created_at timestamptz not null,
    claimed_at timestamptz,
    finished_at timestamptz not null,
    state smallint not null,
    reason smallint,
    succeeded boolean not null,
    key text collate "C" not null,
    payload_hash bytea,
    primary key (job_id, key)
) with (fillfactor = 90);
revoke all on horai.key_past from public;

-- Adds up to `most` instances that ended from `since` until before `before`, with ids above `above`, to the past of their keys. Returns the
-- highest id among them; null without any. Adding an instance twice changes nothing.
create function horai.fold_history(since timestamptz, before timestamptz, above bigint, most integer) returns bigint
language plpgsql set search_path = pg_catalog as $$
declare
    reached bigint;
begin
    select max(page.id) into reached from (
        select past.id from horai.instance_history past
        where past.finished_at >= since and past.finished_at < before and past.id > above order by past.id limit most
    ) page;
    insert into horai.key_past as known (tenant_id, attempt, retry_count, job_id, version, fence, dead_id, last_id, fire_time, execute_time, born_for,
        created_at, claimed_at, finished_at, state, reason, succeeded, key, payload_hash)
    select distinct on (past.job_id, past.key) past.tenant_id, past.attempt, past.retry_count, past.job_id, max(past.version) over of_key, max(past.fence) over of_key,
        max(case when past.state = 4 and exists (
            select from horai.dead_letter letter where letter.instance_id = past.id and letter.replay_status = 'NEW') then past.id end) over of_key,
        past.id, past.fire_time, past.execute_time, past.born_for, past.created_at, past.claimed_at, past.finished_at, past.state, past.reason,
        bool_or(past.state = 2) over of_key, past.key, horai.payload_hash(past.payload)
    from horai.instance_history past
    where past.finished_at >= since and past.finished_at < before and past.id > above and past.id <= reached and past.key is not null
    window of_key as (partition by past.job_id, past.key)
    order by past.job_id, past.key, past.finished_at desc, past.id desc
    on conflict (job_id, key) do update set
        succeeded = known.succeeded or excluded.succeeded,
        version = greatest(known.version, excluded.version),
        fence = greatest(known.fence, excluded.fence),
        dead_id = coalesce(excluded.dead_id, known.dead_id),
        (attempt, retry_count, last_id, fire_time, execute_time, born_for, created_at, claimed_at, finished_at, state, reason, payload_hash) = (
            select later.* from (values
                (excluded.attempt, excluded.retry_count, excluded.last_id, excluded.fire_time, excluded.execute_time, excluded.born_for, excluded.created_at,
                    excluded.claimed_at, excluded.finished_at, excluded.state, excluded.reason, excluded.payload_hash),
                (known.attempt, known.retry_count, known.last_id, known.fire_time, known.execute_time, known.born_for, known.created_at,
                    known.claimed_at, known.finished_at, known.state, known.reason, known.payload_hash)
            ) as later(attempt, retry_count, last_id, fire_time, execute_time, born_for, created_at, claimed_at, finished_at, state, reason, payload_hash)
            order by later.finished_at desc, later.last_id desc limit 1);
    return reached;
end $$;
revoke execute on function horai.fold_history from public;

-- A clock that was set back may write to a day that is already folded.
create function horai.fold_late_instance() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    perform horai.fold_history(new.finished_at, new.finished_at + interval '1 microsecond', new.id - 1, 1);
    return null;
end $$;
revoke execute on function horai.fold_late_instance from public;

-- A row of a day without a partition is folded at once as well.
create trigger fold_late after insert on horai.instance_history_default for each row execute function horai.fold_late_instance();

-- From here on, each row that is written to this day of history is folded at once. Waits for transactions that have written to the day.
create function horai.watch_history_day(day date) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    name text := 'instance_history_' || to_char(day, 'YYYYMMDD');
begin
    if to_regclass('horai.' || name) is null then
        return;
    end if;
    execute format('lock table horai.%I in share row exclusive mode', name);
    execute format('create or replace trigger fold_late after insert on horai.%I for each row execute function horai.fold_late_instance()', name);
end $$;
revoke execute on function horai.watch_history_day from public;

-- Keeps other transactions from writing to a day of a partitioned table until the end of the transaction.
create function horai.lock_history_day(parent text, day date) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if parent not in ('instance_history', 'attempt', 'event', 'note') then
        raise exception '% has no days to lock', parent;
    end if;
    execute format('lock table horai.%I in share row exclusive mode', parent || to_char(day, '_YYYYMMDD'));
end $$;
revoke execute on function horai.lock_history_day from public;

-- Drops a day of a partitioned table, except for rows that are still needed: those of instances with an open dead letter, of workflow
-- runs and backfills that go on, and the last slot of a job whose next run counts from its end; in the other tables, the rows of
-- instances that are live or in history. Returns the number of rows that stay. The day keeps its partition if there are any.
create function horai.drop_history_day(parent text, day date) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    name text := parent || to_char(day, '_YYYYMMDD');
    kept bigint;
    needed text;
begin
    if parent not in ('instance_history', 'attempt', 'event', 'note') then
        raise exception '% has no days to drop', parent;
    end if;
    if parent = 'instance_history' and (select folded_before from horai.history_fold where id = 1) < ((day + 1)::timestamp at time zone 'UTC') then
        raise exception 'the keys of % are not folded', day;
    end if;
    needed := case when parent = 'instance_history' then
        'exists (select from horai.dead_letter letter where letter.instance_id = past.id and letter.replay_status = ''NEW'')
            or exists (select from horai.workflow_node node join horai.workflow_run run on run.id = node.run_id
                where node.instance_id = past.id and run.finished_at is null)
            or exists (select from horai.backfill_instance own where own.instance_id = past.id)
            or past.slot >= 0 and exists (select from horai.job where job.id = past.job_id and job.after_finish is not null and job.deleted_at is null)
                and not exists (select from horai.instance_history later where later.job_id = past.job_id and later.slot >= 0
                    and (later.fire_time, later.id) > (past.fire_time, past.id))'
    else
        'past.instance_id is not null and (exists (select from horai.instance_live live where live.id = past.instance_id)
            or exists (select from horai.instance_history history where history.id = past.instance_id))'
    end;
    perform horai.lock_history_day(parent, day);
    execute format('create table horai.%I (like horai.%I including defaults including constraints)', name || '_kept', parent);
    execute format('insert into horai.%I select past.* from horai.%I past where %s', name || '_kept', name, needed);
    get diagnostics kept = row_count;
    execute format('drop table horai.%I', name);
    if kept = 0 then
        execute format('drop table horai.%I', name || '_kept');
        return 0;
    end if;
    execute format('alter table horai.%I rename to %I', name || '_kept', name);
    execute format('alter table horai.%I attach partition horai.%I for values from (%L) to (%L)', parent, name,
        (day::timestamp at time zone 'UTC')::text, ((day + 1)::timestamp at time zone 'UTC')::text);
    if parent = 'instance_history' then
        execute format('create trigger fold_late after insert on horai.%I for each row execute function horai.fold_late_instance()', name);
    end if;
    return kept;
end $$;
revoke execute on function horai.drop_history_day from public;

create or replace function horai.put_fresh(wish horai.wish) returns horai.put_answer
language plpgsql as $$
declare
    made horai.instance_live := horai.insert_wish(wish);
    past record;
begin
    if made.id is null then
        return null;
    end if;
    select bool_or(succeeded) as succeeded, max(version) as version, max(fence) as fence, array_agg(dead_id) filter (where dead_id is not null) as dead,
        (array_agg(row('IGNORED', id, horai.state_name(state), execute_time)::horai.put_answer order by finished_at desc))[1] as last,
        (array_agg(is_repeat order by finished_at desc))[1] as is_repeat
    into past from (
        select id, state, version, fence, execute_time, finished_at, state = 2 as succeeded, case when state = 4 then id end as dead_id,
            horai.repeats(wish, version, fire_time, payload) as is_repeat
        from horai.instance_history
        where job_id = wish.job_id and key = wish.key and finished_at >= (select folded_before from horai.history_fold where id = 1)
        union all
        select last_id, state, version, fence, execute_time, finished_at, succeeded, dead_id,
            wish.version = version and wish.at = fire_time and (wish.payload is null or horai.payload_hash(wish.payload) = payload_hash)
        from horai.key_past where job_id = wish.job_id and key = wish.key
    ) record;
    if wish.version < past.version or ((past.succeeded or past.is_repeat) and not wish.again) then
        delete from horai.instance_live where id = made.id and state = 0 and attempt = 0;
        return past.last;
    end if;
    if past.last is not null then
        update horai.instance_live live set version = coalesce(live.version, past.version), fence = greatest(live.fence, past.fence)
        where live.id = made.id;
    end if;
    if past.dead is not null then
        update horai.dead_letter set replay_status = 'SUPERSEDED' where instance_id = any (past.dead) and replay_status = 'NEW';
    end if;
    perform horai.tell_lane(made.lane, made.shard, made.due);
    return row('INSERTED', made.id, 'INIT', made.execute_time)::horai.put_answer;
end $$;
