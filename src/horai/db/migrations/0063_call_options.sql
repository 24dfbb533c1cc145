-- The queue, the priority and the expiry of one call (docs/guides/calls.md, docs/decisions/0064).

-- own_lane: the lane of an instance whose call named a queue or a priority; null for one in the lane of its job. expires_at: no attempt begins
-- at this time or later; null for an instance that never expires.
alter table horai.instance_live add column own_lane integer, add column expires_at timestamptz;
alter table horai.instance_history add column own_lane integer, add column expires_at timestamptz;

-- Find the lane of a tenant's queue, or make it. Inherits: the priority is that of the queue.
create function horai.lane_with(tenant integer, queue_name text, own_priority smallint, follows boolean, own_handler text) returns integer
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    found_id integer;
begin
    for round in 1 .. 2 loop
        select lane.id into found_id from horai.lane
        where lane.tenant_id = lane_with.tenant and lane.queue = queue_name and lane.handler = own_handler and lane.inherits = follows
            and (follows or lane.priority = own_priority);
        exit when found;
        insert into horai.lane (tenant_id, queue, priority, handler, inherits)
        values (lane_with.tenant, queue_name, coalesce(own_priority, 2), own_handler, follows) on conflict do nothing returning id into found_id;
        exit when found;  -- otherwise another transaction has made it: the next look sees it
    end loop;
    return found_id;
end $$;
revoke execute on function horai.lane_with from public;

-- The lane of an instance with a lane of its own, for the lane `base` that its job has now: the own queue and priority with the handler of the
-- job. Null without an own lane; 0 if the job is paused. A lane that takes the place of a lane with concurrency keys is marked as well.
create function horai.own_lane_in(own integer, base integer) returns integer
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    kept horai.lane;
    moved integer;
    now_handler text;
begin
    if own is null or base = 0 then
        return case when own is not null then 0 end;
    end if;
    select * into strict kept from horai.lane where id = own;
    select handler into strict now_handler from horai.lane where id = base;
    if kept.handler = now_handler then
        return own;
    end if;
    moved := horai.lane_with(kept.tenant_id, kept.queue, kept.priority, kept.inherits, now_handler);
    if kept.is_keyed then
        perform horai.mark_keyed(array[moved], true);
    end if;
    return moved;
end $$;
revoke execute on function horai.own_lane_in from public;

-- moves: INIT -> INIT, FAIL -> FAIL
-- Give instances that do not run the queues, priorities and expiries of their calls; null leaves what an instance has. A span counts from the
-- time of the instance. An instance in the parking lane stays there, and goes to its own lane when it leaves it. is_new: the caller's
-- transaction has inserted them. fault: `queue` (there is no such queue) and `builtin` (Horai runs the job itself) change nothing; `expires`
-- is not after the time of the instance: the caller rolls back.
create function horai.place_calls(ids bigint[], queues text[], priorities smallint[], spans interval[], instants timestamptz[], is_new boolean)
returns table (instance_id bigint, new_lane integer, new_due timestamptz, fault text)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    asked record;
    base horai.lane;
    own integer;
begin
    for asked in
        select job.lane_id, given.queue, given.priority, array_agg(given.id order by given.id) as ids, array_agg(given.span order by given.id) as spans,
            array_agg(given.instant order by given.id) as instants, bool_or(live.concurrency_key is not null) as has_keys
        from unnest(ids, queues, priorities, spans, instants) as given(id, queue, priority, span, instant)
        join horai.instance_live live on live.id = any (array[given.id]) join horai.job on job.id = live.job_id
        group by job.lane_id, given.queue, given.priority order by 1, 2, 3
    loop
        select * into strict base from horai.lane where id = asked.lane_id;
        own := null;
        if starts_with(base.handler, 'horai:') then
            return query select asked.ids[1], null::integer, null::timestamptz, 'builtin';
            return;
        end if;
        if asked.queue is not null or asked.priority is not null then
            if asked.queue is not null and not exists (
                select from horai.queue where queue.tenant_id = base.tenant_id and queue.name = asked.queue and not queue.is_pool)
            then
                return query select asked.ids[1], null::integer, null::timestamptz, 'queue';
                return;
            end if;
            own := horai.lane_with(base.tenant_id, coalesce(asked.queue, base.queue), coalesce(asked.priority, base.priority),
                asked.priority is null and base.inherits, base.handler);
            if asked.has_keys then
                perform horai.mark_keyed(array[own], is_new);
            end if;
        end if;
        return query
            update horai.instance_live live
            set own_lane = coalesce(own, live.own_lane), lane = case when moves then own else live.lane end,
                due = case when moves then greatest(live.due, clock_timestamp()) else live.due end,
                expires_at = coalesce(given.instant, live.fire_time + given.span, live.expires_at), updated_at = clock_timestamp()
            from unnest(asked.ids, asked.spans, asked.instants) as given(id, span, instant)
            join horai.instance_live known on known.id = any (array[given.id])
            cross join lateral (select own is not null and known.lane <> 0 and known.lane <> own and known.state in (0, 3) as moves) place
            where live.id = any (array[given.id]) and live.state <> 1
            returning live.id, live.lane, live.due, case when live.expires_at <= live.fire_time then 'expires' end;
    end loop;
    if (num_nonnulls(variadic spans) > 0 or num_nonnulls(variadic instants) > 0) and current_setting('horai.sql_wakeup', true) is distinct from 'poll' then
        perform pg_notify('horai_wake', 'x');  -- the stage that ends expired instances may rest
    end if;
end $$;
revoke execute on function horai.place_calls from public;

-- The same for SQL clients: of one job, and only instances that do not run, with their concurrency keys. are_new: this transaction has added
-- them. Returns how many were changed.
create function horai.set_call_options(job text, instance_ids bigint[], queue text default null, priority text default null,
    expires interval default null, expires_at timestamptz default null, concurrency_keys text[] default null, are_new boolean default false)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set enable_seqscan = off as $$
declare
    names text[] := array['core', 'high', 'normal', 'low'];
    wish horai.wish;
    own_ids bigint[];
    rank smallint := array_position(names, priority) - 1;
    placed record;
    changed bigint := 0;
begin
    perform horai.check_time(set_call_options.expires_at, 'expires_at');
    if priority is not null and rank is null then
        perform horai.refuse('HR422', format('priority: %L is not one of core, high, normal, low.', left(priority, 128)), 'Pass one of them.', 'priority');
    end if;
    if expires is not null and set_call_options.expires_at is not null then
        perform horai.refuse('HR422', 'expires_at: cannot be combined with expires.', 'Pass one of them.', 'expires_at');
    end if;
    if expires is not null and (expires < interval '1 millisecond' or expires > interval '365 days') then
        perform horai.refuse('HR422', 'expires: is not between 1ms and 365d.', 'Pass an interval such as ''10 minutes''.', 'expires');
    end if;
    wish := horai.place_of(job);
    own_ids := array(select live.id from horai.instance_live live where live.id = any (instance_ids) and live.job_id = wish.job_id order by live.id);
    if queue is not null or rank is not null or expires is not null or set_call_options.expires_at is not null then
        for placed in
            select made.* from horai.place_calls(own_ids, array_fill(queue, array[cardinality(own_ids)]), array_fill(rank, array[cardinality(own_ids)]),
                array_fill(expires, array[cardinality(own_ids)]), array_fill(set_call_options.expires_at, array[cardinality(own_ids)]),
                coalesce(are_new, false)) made
        loop
            if placed.fault = 'queue' then
                perform horai.refuse('HR422', format('queue: %L does not exist.', left(queue, 128)), '`horai queues set NAME` makes a queue.', 'queue');
            elsif placed.fault = 'builtin' then
                perform horai.refuse('HR422', 'queue: is not accepted by a job that Horai runs itself.', 'Give the options to a call of another job.', 'queue');
            elsif placed.fault = 'expires' then
                perform horai.refuse('HR422', 'expires_at: is not after the time of the instance.', 'Pass a later time, or an interval.', 'expires_at');
            end if;
            changed := changed + 1;
            perform horai.tell_lane(placed.new_lane, (placed.instance_id % 32)::integer, placed.new_due);
        end loop;
    end if;
    if concurrency_keys is not null then
        changed := greatest(changed, horai.set_concurrency_keys(job, instance_ids, concurrency_keys, are_new));
    end if;
    return changed;
end $$;
revoke execute on function horai.set_call_options from public;

-- Adds an instance with the options of its call.
create function horai.enqueue_with(job text, payload anycompatible default null::text, queue text default null, priority text default null,
    expires interval default null, expires_at timestamptz default null, concurrency_key text default null, execute_time timestamptz default null,
    out instance_id bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    instance_id := (horai.enqueue_json(job, horai.json_of(payload), execute_time)).instance_id;
    perform horai.set_call_options(job, array[instance_id], queue, priority, expires, expires_at,
        case when concurrency_key is not null then array[concurrency_key] end, true);
end $$;
revoke execute on function horai.enqueue_with from public;

-- A put that moves an instance moves its expiry along, unless the put has another one. Not a trigger before the update: PostgreSQL locks each
-- updated row for one first. Claims and settlements do not write fire_time, so they never come here.
create function horai.move_expiry() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    update horai.instance_live live set expires_at = new.expires_at + (new.fire_time - old.fire_time) where live.id = new.id;
    if current_setting('horai.sql_wakeup', true) is distinct from 'poll' then
        perform pg_notify('horai_wake', 'x');
    end if;
    return null;
end $$;
revoke execute on function horai.move_expiry from public;
create trigger instance_expiry_moves after update of fire_time on horai.instance_live for each row
when (old.expires_at is not null and new.expires_at is not distinct from old.expires_at and old.fire_time is distinct from new.fire_time)
execute function horai.move_expiry();

-- As in 0061; an instance with an own lane is released to that.
create or replace function horai.release_keys(job_ids bigint[], keys text[])
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
        set lane = coalesce(horai.own_lane_in(live.own_lane, chosen.lane_id), chosen.lane_id), due = greatest(live.due, clock_timestamp()), updated_at = clock_timestamp()
        from chosen where live.id = chosen.id
        returning live.id, live.lane, live.due, live.job_id, live.concurrency_key;
end $$;

-- As in 0061; the own lanes of the instances are marked as well, and an instance that waits goes to its own lane.
create or replace function horai.assign_keys(ids bigint[], keys text[], is_new boolean)
returns table (instance_id bigint, new_lane integer, new_due timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    perform horai.mark_keyed(array(
        select distinct job.lane_id from horai.instance_live live join horai.job on job.id = live.job_id where live.id = any (ids)
        union select distinct live.lane from horai.instance_live live where live.id = any (ids) and live.lane <> 0
        union select distinct horai.own_lane_in(live.own_lane, job.lane_id) from horai.instance_live live join horai.job on job.id = live.job_id
            where live.id = any (ids) and live.own_lane is not null), is_new);
    return query
        update horai.instance_live live
        set concurrency_key = given.key, lane = case when is_waiting then coalesce(horai.own_lane_in(live.own_lane, job.lane_id), job.lane_id) else live.lane end,
            due = case when is_waiting then greatest(live.due, clock_timestamp()) else live.due end, updated_at = clock_timestamp()
        from unnest(ids, keys) as given(id, key) join horai.instance_live own on own.id = given.id join horai.job on job.id = own.job_id
        cross join lateral (select own.lane = 0 and own.concurrency_key is not null and own.state in (0, 3) and job.status = 0 as is_waiting) place
        where live.id = given.id and live.state <> 1 and live.concurrency_key is distinct from given.key
        returning live.id, live.lane, live.due;
end $$;

-- moves: INIT | FAIL | BLOCKED | RUNNING -> CANCELLED
-- Ends a live row that the caller has locked, as before. Its own lane and its expiry go with it.
create or replace function horai.end_live(live horai.instance_live, reason smallint, data json) returns void
language plpgsql as $$
begin
    delete from horai.instance_live gone where gone.id = live.id;
    insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence, node,
        version, supersedes, replay_of, tenant_id, lane, attempt, retry_count, events, state, reason, key, payload, error_code, error_msg, concurrency_key,
        own_lane, expires_at)
    values (live.id, live.job_id, live.fire_time, live.execute_time, live.born_for, live.slot, live.created_at, live.claimed_at,
        clock_timestamp(), live.fence, live.node, live.version, live.supersedes, live.replay_of, live.tenant_id, live.lane, live.attempt,
        live.retry_count, live.events + 1, 5, end_live.reason, live.key, live.payload, live.error_code, live.error_msg, live.concurrency_key,
        live.own_lane, live.expires_at);
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
        'horai.enqueue_with, horai.set_call_options, '
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
        execute format('grant execute on function horai.enqueue_with, horai.set_call_options to %I', held.role);
    end loop;
end $$;
