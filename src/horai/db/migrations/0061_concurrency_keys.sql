-- Concurrency keys (docs/guides/calls.md, docs/decisions/0061): at most n instances of a job with the same key run at once.

-- The key of the call; null without one. An instance that may not run because of its key waits in the parking lane (lane 0).
alter table horai.instance_live add column concurrency_key text collate "C";
alter table horai.instance_history add column concurrency_key text collate "C";

-- is_keyed: the lane has, or had, instances with a key. Only claims that check keys take rows of such a lane (open_lanes, enter_queue): a node
-- that has not heard of the first key, or is of an older version, takes none. The mark and the first key are committed together.
alter table horai.lane add column is_keyed boolean not null default false;

-- Mark a lane. The notification lets every node read its lanes again. A transaction that gives a key to an instance that was visible without
-- one (is_new false) waits for the claims under way first: their snapshots do not show the mark.
create function horai.mark_keyed(lanes integer[], is_new boolean) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    fresh record;
begin
    for fresh in
        select lane.id, lane.queue_id from horai.lane where lane.id = any (lanes) and not lane.is_keyed order by lane.id
    loop
        if not is_new then
            perform horai.shut_queue(fresh.queue_id);
        end if;
        update horai.lane set is_keyed = true where lane.id = fresh.id and not lane.is_keyed;
        perform pg_notify('horai_wake', 'q:' || fresh.queue_id);
    end loop;
end $$;
revoke execute on function horai.mark_keyed from public;

-- Claims that check no keys enter only lanes without keys; the rest is as in 0034.
create or replace function horai.open_lanes(lanes integer[]) returns integer[]
language plpgsql volatile set search_path = pg_catalog as $$
declare
    entered integer[];
begin
    entered := array(
        select lane.id from (select distinct unnest(lanes) as id) asked join horai.lane on lane.id = asked.id
        where not lane.is_keyed and pg_try_advisory_xact_lock_shared(1215263329, lane.queue_id));
    if not exists (select from horai.queue where max_concurrency is not null or paused or held or pool_id is not null) then
        return entered;
    end if;
    return array(
        select inside.id from unnest(entered) as inside(id) where not exists (
            select from horai.lane join horai.queue on queue.id = lane.queue_id
            where lane.id = inside.id and (queue.max_concurrency is not null or queue.paused or queue.held or queue.pool_id is not null)));
end $$;

-- The same for claims that check keys: lanes with and without keys, of queues without a limit and a pause.
create function horai.open_keyed_lanes(lanes integer[]) returns integer[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    entered integer[];
begin
    entered := array(
        select lane.id from (select distinct unnest(lanes) as id) asked join horai.lane on lane.id = asked.id
        where pg_try_advisory_xact_lock_shared(1215263329, lane.queue_id));
    return array(
        select inside.id from unnest(entered) as inside(id) where not exists (
            select from horai.lane join horai.queue on queue.id = lane.queue_id
            where lane.id = inside.id and (queue.max_concurrency is not null or queue.paused or queue.held or queue.pool_id is not null)));
end $$;
revoke execute on function horai.open_keyed_lanes from public;

-- Enter a queue whose instances need permits, for claims that check keys (0034 has the meaning of the columns).
create function horai.enter_keyed_queue(queue integer) returns table (
    version bigint, is_limited boolean, beyond bigint, pool_id integer, pool_version bigint, pool_beyond bigint
)
language plpgsql volatile rows 1 set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if not pg_try_advisory_xact_lock_shared(1215263329, enter_keyed_queue.queue) then
        return;
    end if;
    return query
        select own.version, own.max_concurrency is not null,
            (select count(*) from horai.queue_slot slot where slot.queue_id = own.id and slot.retired), own.pool_id, pool.version,
            case when own.pool_id is not null then
                (select count(*) from horai.queue_slot slot where slot.queue_id = own.pool_id and slot.retired) end
        from horai.queue own left join horai.queue pool on pool.id = own.pool_id
        where own.id = enter_keyed_queue.queue and (own.max_concurrency is not null or own.pool_id is not null) and not own.paused and not own.held;
end $$;
revoke execute on function horai.enter_keyed_queue from public;

-- The claims of older nodes, which check no keys, enter only queues without keyed lanes.
create or replace function horai.enter_queue(queue integer) returns table (
    version bigint, is_limited boolean, beyond bigint, pool_id integer, pool_version bigint, pool_beyond bigint
)
language plpgsql volatile rows 1 set search_path = pg_catalog as $$
#variable_conflict use_column
begin
    return query
        select entry.* from horai.enter_keyed_queue(enter_queue.queue) as entry
        where not exists (select from horai.lane where lane.queue_id = enter_queue.queue and lane.is_keyed);
end $$;

-- The instances of a key that may run at once: `concurrencyPerKey` of the job, 1 if it has none.
create function horai.places_of_key(definition json) returns integer
language sql immutable parallel safe set search_path = pg_catalog as $$
    select coalesce((definition ->> 'concurrencyPerKey')::integer, 1)
$$;
revoke execute on function horai.places_of_key from public;

-- Lock keys until the transaction ends, in the order of their hashes, so that two transactions cannot wait for each other. Only claims and
-- releases lock keys, each in a transaction of one statement: no transaction of a user does. What a statement after this one reads was
-- committed before any other transaction gets the lock.
create function horai.lock_keys(job_ids bigint[], keys text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    part integer;
begin
    for part in
        select distinct hashtext(given.job_id || ':' || given.key) from unnest(job_ids, keys) as given(job_id, key) order by 1
    loop
        perform pg_advisory_xact_lock(1215263336, part);
    end loop;
end $$;
revoke execute on function horai.lock_keys from public;

-- Decide which of the instances `ids`, which the caller has locked, may run: those without a key, and those of a key that has a place, the
-- oldest first. The others go to the parking lane. Runs inside the statement that claims: from here to its commit, no other claim and no
-- release of these keys counts. An instance of a key that runs is in a lane and was due; the minute is for a clock that was set back.
create function horai.admit_keys(ids bigint[], lanes integer[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    job_ids bigint[];
    keys text[];
    refused bigint[];
    horizon timestamptz;
begin
    if not exists (select from horai.lane where lane.id = any (lanes) and lane.is_keyed) then
        return ids;
    end if;
    select array_agg(live.job_id), array_agg(live.concurrency_key) into job_ids, keys
    from horai.instance_live live where live.id = any (ids) and live.concurrency_key is not null;
    if keys is null then
        return ids;
    end if;
    perform horai.lock_keys(job_ids, keys);
    horizon := clock_timestamp() + interval '1 minute';
    refused := array(
        with asked as materialized (
            select live.id, live.job_id, live.concurrency_key as key,
                row_number() over (partition by live.job_id, live.concurrency_key order by live.id) as place
            from horai.instance_live live where live.id = any (ids) and live.concurrency_key is not null
        ), limits as materialized (
            select job.id, horai.places_of_key(job.definition) as places from horai.job where job.id = any (job_ids)
        ), room as materialized (
            select named.job_id, named.key, limits.places - (
                select count(*) from (
                    select from horai.instance_live held
                    where held.job_id = named.job_id and held.concurrency_key = named.key and held.lane <> 0
                        and held.due <= horizon and held.state = 1
                    limit limits.places
                ) running) as places
            from (select distinct job_id, key from asked) named join limits on limits.id = named.job_id
        )
        select asked.id from asked join room on room.job_id = asked.job_id and room.key = asked.key where asked.place > room.places);
    if cardinality(refused) = 0 then
        return ids;
    end if;
    update horai.instance_live live set lane = 0, updated_at = clock_timestamp() where live.id = any (refused);
    return array(select given.id from unnest(ids) as given(id) where given.id <> all (refused));
end $$;
revoke execute on function horai.admit_keys from public;

-- Move instances of keys with a free place from the parking lane to the lanes of their jobs, the oldest first. An instance in a lane that is
-- due counts as one that has a place: it runs, or will be claimed. One that is not due yet takes no place: the claim decides on it.
create function horai.release_keys(job_ids bigint[], keys text[])
returns table (instance_id bigint, new_lane integer, new_due timestamptz, of_job bigint, of_key text)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    moment timestamptz;
begin
    perform horai.mark_keyed(array(select distinct job.lane_id from horai.job where job.id = any (job_ids)), true);
    perform horai.lock_keys(job_ids, keys);
    moment := clock_timestamp();
    return query
        with waited as materialized (
            select distinct given.job_id, given.key from unnest(job_ids, keys) as given(job_id, key)
            cross join lateral (
                select from horai.instance_live parked
                where parked.job_id = given.job_id and parked.concurrency_key = given.key and parked.lane = 0 limit 1
            ) one
        ), limits as materialized (
            select job.id, job.lane_id, horai.places_of_key(job.definition) as places from horai.job
            where job.id in (select waited.job_id from waited) and job.status = 0 and job.deleted_at is null
        ), room as materialized (
            select named.job_id, named.key, limits.lane_id, limits.places - (
                select count(*) from (
                    select from horai.instance_live held
                    where held.job_id = named.job_id and held.concurrency_key = named.key and held.lane <> 0
                        and held.due <= moment and held.state in (0, 1, 3)
                    limit limits.places
                ) taken) as places
            from waited named join limits on limits.id = named.job_id
        ), chosen as materialized (
            select parked.id, room.lane_id from room cross join lateral (
                select live.id from horai.instance_live live
                where live.job_id = room.job_id and live.concurrency_key = room.key and live.lane = 0 and live.state in (0, 3)
                    and live.due <= moment
                order by live.id limit room.places for update skip locked
            ) parked
            union all
            select later.id, room.lane_id from room cross join lateral (
                select live.id from horai.instance_live live
                where live.job_id = room.job_id and live.concurrency_key = room.key and live.lane = 0 and live.state in (0, 3)
                    and live.due > moment
                order by live.id limit 1000 for update skip locked
            ) later
        )
        update horai.instance_live live
        set lane = chosen.lane_id, due = greatest(live.due, clock_timestamp()), updated_at = clock_timestamp()
        from chosen where live.id = chosen.id
        returning live.id, live.lane, live.due, live.job_id, live.concurrency_key;
end $$;
revoke execute on function horai.release_keys from public;

-- Give instances that have not started their keys. is_new: the caller's transaction has inserted them. An instance that waits for a place of
-- another key goes to the lane of its job: the next claim decides.
create function horai.assign_keys(ids bigint[], keys text[], is_new boolean)
returns table (instance_id bigint, new_lane integer, new_due timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    perform horai.mark_keyed(array(
        select distinct job.lane_id from horai.instance_live live join horai.job on job.id = live.job_id where live.id = any (ids)
        union select distinct live.lane from horai.instance_live live where live.id = any (ids) and live.lane <> 0), is_new);
    return query
        update horai.instance_live live
        set concurrency_key = given.key, lane = case when is_waiting then job.lane_id else live.lane end,
            due = case when is_waiting then greatest(live.due, clock_timestamp()) else live.due end, updated_at = clock_timestamp()
        from unnest(ids, keys) as given(id, key) join horai.instance_live own on own.id = given.id join horai.job on job.id = own.job_id
        cross join lateral (select own.lane = 0 and own.concurrency_key is not null and own.state in (0, 3) and job.status = 0 as is_waiting) place
        where live.id = given.id and live.state <> 1 and live.concurrency_key is distinct from given.key
        returning live.id, live.lane, live.due;
end $$;
revoke execute on function horai.assign_keys from public;

-- The same for SQL clients: of one job, and only instances that have not started. are_new: this transaction has added them. Returns how many
-- have another key now.
create function horai.set_concurrency_keys(job text, instance_ids bigint[], keys text[], are_new boolean default false) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    wish horai.wish;
    moved record;
    changed bigint := 0;
    own_ids bigint[];
    own_keys text[];
begin
    if cardinality(instance_ids) is distinct from cardinality(keys) then
        perform horai.refuse('HR422', 'keys: are not as many as instance_ids.', 'Pass one key for each instance.', 'keys');
    end if;
    if exists (select from unnest(keys) as given(key) where given.key is null or length(given.key) not between 1 and 512) then
        perform horai.refuse('HR422', 'concurrency_key: is not between 1 and 512 characters long.', 'Pass a text such as ''customer-7''.',
            'concurrency_key');
    end if;
    wish := horai.place_of(job);
    if exists (select from horai.job own join horai.lane on lane.id = own.lane_id where own.id = wish.job_id and starts_with(lane.handler, 'horai:')) then
        perform horai.refuse('HR422', 'concurrency_key: is not accepted by a job that Horai runs itself.', 'Give the key to a call of another job.',
            'concurrency_key');
    end if;
    select array_agg(own.id), array_agg(asked.key) into own_ids, own_keys
    from unnest(instance_ids, keys) as asked(id, key) join horai.instance_live own on own.id = asked.id and own.job_id = wish.job_id;
    for moved in select made.* from horai.assign_keys(coalesce(own_ids, '{}'), coalesce(own_keys, '{}'), coalesce(are_new, false)) made loop
        changed := changed + 1;
        perform horai.tell_lane(moved.new_lane, (moved.instance_id % 32)::integer, moved.new_due);
    end loop;
    return changed;
end $$;
revoke execute on function horai.set_concurrency_keys from public;

-- Adds an instance with a concurrency key: at most `concurrencyPerKey` instances of the job with this key run at once (1 if the job has none).
create function horai.enqueue_keyed(job text, payload anycompatible default null::text, concurrency_key text default null,
    execute_time timestamptz default null, out instance_id bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    instance_id := (horai.enqueue_json(job, horai.json_of(payload), execute_time)).instance_id;
    perform horai.set_concurrency_keys(job, array[instance_id], array[concurrency_key], true);
end $$;
revoke execute on function horai.enqueue_keyed from public;

-- moves: INIT | FAIL | BLOCKED | RUNNING -> CANCELLED
-- Ends a live row that the caller has locked, as before. Its key goes with it.
create or replace function horai.end_live(live horai.instance_live, reason smallint, data json) returns void
language plpgsql as $$
begin
    delete from horai.instance_live gone where gone.id = live.id;
    insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence, node,
        version, supersedes, replay_of, tenant_id, lane, attempt, retry_count, events, state, reason, key, payload, error_code, error_msg, concurrency_key)
    values (live.id, live.job_id, live.fire_time, live.execute_time, live.born_for, live.slot, live.created_at, live.claimed_at,
        clock_timestamp(), live.fence, live.node, live.version, live.supersedes, live.replay_of, live.tenant_id, live.lane, live.attempt,
        live.retry_count, live.events + 1, 5, end_live.reason, live.key, live.payload, live.error_code, live.error_msg, live.concurrency_key);
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    values (live.tenant_id, live.job_id, live.id, live.events + 1, 'INSTANCE_CANCELLED', end_live.data);
    if live.state = 1 and current_setting('horai.sql_wakeup', true) is distinct from 'poll' then
        perform pg_notify('horai_wake', format('o:%s:%s', live.id, live.fence));
    end if;
end $$;

-- Allow a role to add, cancel and signal instances of a tenant, of all its jobs or of these. A second call replaces the jobs.
create or replace function horai.grant_client(role_name text, tenant text default 'default', jobs text[] default null) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    bound integer := (select id from horai.tenant owner where owner.name = grant_client.tenant);
    follower text := horai.follow_function(bound, jobs);
begin
    if bound is null then
        perform horai.refuse('HR404', format('There is no tenant %L.', left(tenant, 128)), '`horai tenants list` has the tenants.', 'tenant');
    end if;
    perform horai.revoke_client(role_name, tenant);
    insert into horai.client (role, tenant_id, jobs) values (role_name, bound, grant_client.jobs);
    execute format('grant usage on schema horai to %I', role_name);
    execute format('grant execute on function horai.put_instance, horai.enqueue, horai.enqueue_many, horai.cancel_instance, '
        'horai.json_of, horai.put_json, horai.enqueue_json, horai.enqueue_many_json, horai.signal, horai.signal_json, horai.record_step, '
        'horai.enqueue_unique, horai.enqueue_debounced, horai.enqueue_calls_json, horai.enqueue_keyed, horai.set_concurrency_keys, '
        'horai.add_entity, horai.add_entities, horai.remove_entity, horai.follow_table, horai.unfollow_table, '
        'horai.follower_name, horai.follow_call, horai.column_json, horai.columns_json, horai.write_follower, horai.drop_follower '
        'to %I', role_name);
    execute format('create or replace function horai.%I(job text, old_key text, new_key text, payload jsonb) returns void '
        'language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as %L', follower,
        format('begin perform horai.follow_for(%s, %L::text[], job, old_key, new_key, payload); end', bound, jobs));
    execute format('revoke execute on function horai.%I from public', follower);
    execute format('grant execute on function horai.%I to %I', follower, role_name);
end $$;

-- online: grants on functions that no session uses yet
do $$
declare
    held record;
begin
    for held in select distinct role from horai.client where to_regrole(quote_ident(role)) is not null loop
        execute format('grant execute on function horai.enqueue_keyed, horai.set_concurrency_keys to %I', held.role);
    end loop;
end $$;
