-- Refresh jobs (docs/guides/refresh.md): a set of entities, each of which is run again when a window has passed over it.

-- A refresh job has its entities' instances; its schedule is followed by another job, whose instances are the ticks.
alter table horai.job add column ticks_for bigint references horai.job;
create unique index job_ticks on horai.job (ticks_for) where ticks_for is not null and deleted_at is null;

-- status: 0 not run, 1 running, 2 success, 3 failed. Whether it is due is for finish_time to say, whatever the status of its
-- last run. batch_no is the tick that loaded it, instance_id the instance it was loaded into. fresh_at: the end
-- of its last run, also while it runs again; null while it never has.
create table horai.entity (
    id bigint generated always as identity,
    job_id bigint not null,
    batch_no bigint,
    instance_id bigint,
    start_time timestamptz,
    finish_time timestamptz,
    create_time timestamptz not null default clock_timestamp(),
    update_time timestamptz not null default clock_timestamp(),
    fresh_at timestamptz,
    status smallint not null default 0 check (status between 0 and 3),
    key text collate "C" not null,
    remark text,
    payload json,
    primary key (job_id, key),
    constraint entity_has_finished check ((status in (2, 3)) = (finish_time is not null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- What a tick loads, in the order in which it does: what has not run first, then by the end of the last run. Two indexes, so
-- that those who came after the tick are not walked over by each of its looks; every entity is in one of the three at a time.
create index entity_new on horai.entity (job_id, create_time, id) where status = 0;
create index entity_due on horai.entity (job_id, finish_time, id) where status in (2, 3);
create index entity_running on horai.entity (job_id, id) where status = 1;
create index entity_fresh on horai.entity (job_id, fresh_at, id);
create index entity_batch on horai.entity (job_id, batch_no, id) where batch_no is not null;

-- How far a tick has come: how many were due when it began, and how many of them it has loaded.
create table horai.refresh_batch (
    job_id bigint not null,
    batch_no bigint not null,
    fire_time timestamptz not null,
    due bigint not null,
    loaded bigint not null default 0,
    started_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    primary key (job_id, batch_no)
);
create index refresh_batch_newest on horai.refresh_batch (job_id, fire_time, batch_no);

-- With the columns of seed 003; entity_key is its product_code.
create view horai.refresh_entity as
select id as task_id, job_id, key as entity_key, start_time, finish_time, status as task_status, remark, create_time, update_time, batch_no
from horai.entity;

-- moves: -> INIT
-- The first instances of entities that were just added, at once. A key that has a live instance is left to the next tick.
create function horai.run_added(place horai.wish, added text[]) returns void
language plpgsql as $$
declare
    made bigint[];
begin
    with born as (
        select nextval('horai.instance_id') as id, entity.key, entity.payload, clock_timestamp() as at
        from horai.entity where entity.job_id = place.job_id and entity.key = any (added) order by entity.key
    ), fresh as (
        insert into horai.instance_live (id, job_id, tenant_id, lane, shard, key, fire_time, execute_time, born_for, due, slot, payload)
        select born.id, place.job_id, place.tenant_id, place.lane, born.id % 32, born.key, born.at, born.at, born.at, born.at, -born.id,
            coalesce(born.payload, place.job_payload)
        from born
        on conflict (job_id, key) where key is not null do nothing
        returning id, key
    ), bound as (
        update horai.entity set status = 1, start_time = clock_timestamp(), update_time = clock_timestamp(), instance_id = fresh.id
        from fresh where entity.job_id = place.job_id and entity.key = fresh.key
        returning fresh.id
    )
    select array_agg(id) into made from bound;
    update horai.instance_live live set fence = past.fence
    from (
        select fresh.id, max(gone.fence) as fence from horai.instance_live fresh
        join horai.instance_history gone on gone.job_id = fresh.job_id and gone.key = fresh.key
        where fresh.id = any (made) group by fresh.id
    ) past
    where live.id = past.id;
    if made is not null then
        perform horai.tell_lane(place.lane, case when cardinality(made) = 1 then (made[1] % 32)::integer end, clock_timestamp());
    end if;
end $$;

-- Entities of a job that the caller holds: new ones are added, known ones get the payload. How many are new.
create function horai.keep_entities(place horai.wish, keys text[], payloads json[]) returns integer
language plpgsql as $$
declare
    runs_on_add boolean;
    added text[];
begin
    select coalesce((job.definition -> 'refresh' ->> 'runOnAdd')::boolean, false) into runs_on_add
    from horai.job where job.id = place.job_id and (job.definition -> 'refresh') is not null;
    if not found then
        perform horai.refuse('HR422', 'job: has no entities, for it is no refresh job.',
            'A refresh job has a cron or an every, and "refresh": {"window": "10d"}.', 'job');
    end if;
    with given as (
        select distinct on (item.key) item.key, item.payload
        from unnest(keys, payloads) with ordinality as item(key, payload, position)
        order by item.key, item.position desc
    ), kept as (
        insert into horai.entity as known (job_id, key, payload)
        select place.job_id, given.key, given.payload from given order by given.key
        on conflict (job_id, key) do update set payload = excluded.payload, update_time = clock_timestamp()
        where known.payload::text is distinct from excluded.payload::text
        returning known.key, known.xmax = 0 as is_new
    )
    select coalesce(array_agg(key) filter (where is_new), '{}') into added from kept;
    if runs_on_add and cardinality(added) > 0 then
        perform horai.run_added(place, added);
    end if;
    return cardinality(added);
end $$;

-- An entity is none any more: what waits for it is cancelled, what runs finishes. Whether it was one.
create function horai.drop_entity(job_id bigint, key text) returns boolean
language plpgsql as $$
declare
    gone horai.entity;
    live horai.instance_live;
begin
    delete from horai.entity known where known.job_id = drop_entity.job_id and known.key = drop_entity.key returning known.* into gone;
    if not found then
        return false;
    end if;
    if gone.status = 1 then
        select * into live from horai.instance_live waiting where waiting.id = gone.instance_id and waiting.state <> 1 for update;
        if found then
            perform horai.end_live(live, 1::smallint, json_build_object(
                'idemKey', horai.idem_key(live.job_id, live.born_for, live.slot), 'reason', 'USER'));
        end if;
    end if;
    return true;
end $$;

create function horai.add_entities(job text, keys text[], payloads json[] default null) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    if cardinality(keys) <> coalesce(cardinality(payloads), cardinality(keys)) then
        perform horai.refuse('HR422', 'payloads: are not as many as the keys.', 'One for each key, or null for none.', 'payloads');
    end if;
    perform horai.check_key(given.key) from unnest(keys) as given(key);
    return horai.keep_entities(horai.place_of(job), keys,
        array(select horai.checked_payload(item.payload) from unnest(payloads) with ordinality as item(payload, position) order by item.position));
end $$;

create function horai.add_entity(job text, key text, payload json default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    perform horai.check_key(key);
    return horai.keep_entities(horai.place_of(job), array[key], array[horai.checked_payload(payload)]) = 1;
end $$;

create function horai.remove_entity(job text, key text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish := horai.place_of(job);
begin
    perform horai.check_key(key);
    return horai.drop_entity(place.job_id, key);
end $$;

-- Beside a business table: its rows are the entities of a job. The arguments are tenant, job, key column, payload columns.
-- A job that is gone, or no refresh job any more, is nobody's fault who writes the table: then nothing happens.
create function horai.follow_row() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    was jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    now_is jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    old_key text := was ->> tg_argv[2];
    new_key text := now_is ->> tg_argv[2];
    old_payload jsonb;
    payload jsonb;
    place horai.wish;
begin
    for place_of_column in 3 .. tg_nargs - 1 loop
        old_payload := coalesce(old_payload, '{}') || jsonb_build_object(tg_argv[place_of_column], was -> tg_argv[place_of_column]);
        payload := coalesce(payload, '{}') || jsonb_build_object(tg_argv[place_of_column], now_is -> tg_argv[place_of_column]);
    end loop;
    if tg_op = 'UPDATE' and old_key is not distinct from new_key and old_payload is not distinct from payload then
        return null;
    end if;
    select job.id, job.tenant_id, case when job.status = 0 then job.lane_id else 0 end, job.payload
    into place.job_id, place.tenant_id, place.lane, place.job_payload
    from horai.job join horai.tenant on tenant.id = job.tenant_id
    where tenant.name = tg_argv[0] and job.name = tg_argv[1] and job.deleted_at is null and (job.definition -> 'refresh') is not null
    for key share of job;
    if not found then
        return null;
    end if;
    if old_key is distinct from new_key and old_key is not null then
        perform horai.drop_entity(place.job_id, old_key);
    end if;
    if new_key is not null then
        perform horai.check_key(new_key);
        perform horai.keep_entities(place, array[new_key], array[payload::json]);
    end if;
    return null;
end $$;

create function horai.follower_name(job text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select 'horai_follow_' || left(regexp_replace(job, '[^A-Za-z0-9]', '_', 'g'), 30) || '_'
        || left(md5(coalesce(nullif(current_setting('horai.tenant', true), ''), 'default') || '/' || job), 8)
$$;

-- From now on the rows of a table are entities of a job: those there are, and those that come and go, in the transactions in
-- which they do. Run by whoever may put a trigger on the table, again after a change; how many entities are new.
-- The trigger's lock keeps writers out until this commits: no row is missed between the two.
create function horai.follow_table(followed regclass, job text, key_column text, payload_columns text[] default '{}') returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    tenant_name text := coalesce(nullif(current_setting('horai.tenant', true), ''), 'default');
    arguments text := (select string_agg(quote_literal(word), ', ') from unnest(array[tenant_name, job, key_column] || payload_columns) as word);
    payload text := (select 'json_build_object(' || string_agg(format('%1$L, to_jsonb(source) -> %1$L', name), ', ') || ')' from unnest(payload_columns) as name);
    missing text := (
        select string_agg(name, ', ') from unnest(array[key_column] || payload_columns) as name where not exists (
            select from pg_attribute where attrelid = followed and attname = name and attnum > 0 and not attisdropped));
    chunk record;
    added bigint := 0;
begin
    if missing is not null then
        raise exception using errcode = 'HR422', message = format('%s has no column %s.', followed, missing),
            hint = 'Name columns of the table as they are spelled in it.', column = 'key_column';
    end if;
    added := horai.add_entities(job, '{}');
    execute format('create or replace trigger %I after insert or update or delete on %s for each row execute function horai.follow_row(%s)',
        horai.follower_name(job), followed, arguments);
    for chunk in execute format(
        'select array_agg(entity.key) as keys, array_agg(entity.payload) as payloads from ('
        'select to_jsonb(source) ->> %L as key, %s as payload, (row_number() over () - 1) / 10000 as part from %s source'
        ') entity where entity.key is not null group by entity.part', key_column, coalesce(payload, 'null::json'), followed)
    loop
        added := added + horai.add_entities(job, chunk.keys, chunk.payloads);
    end loop;
    return added;
end $$;

-- The table is left alone from now on; the entities stay.
create function horai.unfollow_table(followed regclass, job text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('drop trigger if exists %I on %s', horai.follower_name(job), followed);
end $$;

revoke execute on function
    horai.run_added, horai.keep_entities, horai.drop_entity, horai.add_entities, horai.add_entity, horai.remove_entity, horai.follow_row,
    horai.follower_name, horai.follow_table, horai.unfollow_table
from public;

create or replace function horai.grant_client(role_name text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema horai to %I', role_name);
    execute format('grant execute on function horai.put_instance, horai.enqueue, horai.enqueue_many, horai.cancel_instance, '
        'horai.add_entity, horai.add_entities, horai.remove_entity, horai.follow_row, horai.follower_name, horai.follow_table, '
        'horai.unfollow_table to %I', role_name);
end $$;
