-- Durable steps (docs/guides/durable-steps.md): what a function has finished, what it waits for, and the signals that it gets.

-- One record for each step, sleep or wait of an instance. kind: 1 step, 2 sleep, 3 wait. progress: 0 open, 1 finished, 2 failed; a record that
-- is not open never changes. until: when an open step is tried again, when a sleep is over, and the deadline of a wait. fence: the claim that
-- wrote it. Not partitioned by day: the key must be unique for the whole life of an instance (decision 0055).
create table horai.step (
    instance_id bigint not null,
    tenant_id integer not null,
    kind smallint not null check (kind between 1 and 3),
    progress smallint not null check (progress between 0 and 2),
    n integer not null check (n > 0),
    tries integer not null default 0,
    fence bigint not null,
    started_at timestamptz not null,
    finished_at timestamptz,
    until timestamptz,
    name text collate "C" not null,
    error_type text,
    error_msg text,
    result json,
    primary key (instance_id, kind, name, n),
    constraint step_is_finished check ((progress = 0) = (finished_at is null))
);

-- A signal is stored before a function waits for it. The instance's row is locked while one is stored: their ids are in the order of their arrival.
create table horai.step_signal (
    id bigint generated always as identity primary key,
    instance_id bigint not null,
    tenant_id integer not null,
    name text collate "C" not null,
    payload json,
    request_key text,
    sent_at timestamptz not null default clock_timestamp(),
    consumed_at timestamptz,
    consumed_by integer
);
create index signal_waiting on horai.step_signal (instance_id, name, id) where consumed_at is null;
create unique index signal_once on horai.step_signal (instance_id, name, request_key) where request_key is not null;
create index signal_of_instance on horai.step_signal (instance_id);
revoke all on horai.step, horai.step_signal from public;

-- Set when a function suspends itself. While the row is INIT and due at this time, it is suspended; a claim does not write it.
alter table horai.instance_live add column suspended_until timestamptz;

-- A put that moves an instance or gives it another payload starts it over: its records belong to what was asked before. Claims and
-- settlements write neither column, so they never come here. Not a trigger before the update: PostgreSQL locks each updated row for one first.
create function horai.start_over() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    delete from horai.step where instance_id = new.id;
    update horai.instance_live live set suspended_until = null where live.id = new.id and live.suspended_until is not null;
    return null;
end $$;
revoke execute on function horai.start_over from public;
create trigger instance_starts_over after update of fire_time, payload on horai.instance_live for each row
when ((old.attempt > 0 or old.suspended_until is not null)
    and (old.fire_time is distinct from new.fire_time or old.payload::text is distinct from new.payload::text))
execute function horai.start_over();

-- moves: INIT -> INIT
-- Stores a signal for a live instance of the tenant, and makes the instance due if it waits for it. No row: the instance is not live. A
-- second call with the same once_key stores nothing. lane and due are those of an instance that was woken, else null.
create function horai.send_signal(instance bigint, tenant integer, signal_name text, content json, once_key text,
    out signal_id bigint, out is_new boolean, out lane integer, out due timestamptz)
returns setof record language plpgsql volatile set search_path = pg_catalog as $$
declare
    live horai.instance_live;
begin
    select * into live from horai.instance_live held where held.id = send_signal.instance and held.tenant_id = send_signal.tenant for update;
    if not found then
        return;
    end if;
    insert into horai.step_signal (instance_id, tenant_id, name, payload, request_key)
    values (live.id, live.tenant_id, signal_name, content, once_key)
    on conflict (instance_id, name, request_key) where request_key is not null do nothing
    returning id into signal_id;
    is_new := signal_id is not null;
    if not is_new then
        select id into signal_id from horai.step_signal known
        where known.instance_id = live.id and known.name = signal_name and known.request_key = once_key;
    elsif live.state = 0 and live.due > clock_timestamp() and exists (
        select from horai.step asked
        where asked.instance_id = live.id and asked.kind = 3 and asked.name = signal_name and asked.progress = 0
    ) then
        update horai.instance_live woken set due = clock_timestamp(), execute_time = clock_timestamp(), updated_at = clock_timestamp()
        where woken.id = live.id returning woken.lane, woken.due into lane, due;
    end if;
    return next;
end $$;
revoke execute on function horai.send_signal from public;

-- Sends a signal to the live instance of a key, in the caller's transaction. Returns the id of the signal.
create function horai.signal_json(job text, key text, name text, payload json, idempotency_key text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
    live_id bigint;
    sent record;
begin
    perform horai.check_key(key);
    if name is null or name !~ '^[^#[:cntrl:]]{1,128}$' then
        perform horai.refuse('HR422', 'name: is not the name of a signal.', 'Use 1 to 128 characters without # and control characters.', 'name');
    end if;
    if length(idempotency_key) not between 1 and 255 then
        perform horai.refuse('HR422', 'idempotency_key: is not between 1 and 255 characters long.', 'Use a UUID.', 'idempotency_key');
    end if;
    place := horai.place_of(job);
    if place.again then
        perform horai.refuse('HR422', 'The job is encrypted, and signals are stored as they are.', 'Send signals to a job that is not encrypted.', 'job');
    end if;
    select held.id into live_id from horai.instance_live held where held.job_id = place.job_id and held.key = signal_json.key;
    select * into sent from horai.send_signal(live_id, place.tenant_id, name, horai.checked_payload(payload), idempotency_key);
    if sent.signal_id is null then
        perform horai.refuse('HR404', format('The key %L has no live instance.', left(key, 128)), 'Put the key first.', 'key');
    end if;
    if sent.lane is not null then
        perform horai.tell_lane(sent.lane, (live_id % 32)::integer, sent.due);
    end if;
    return sent.signal_id;
end $$;
revoke execute on function horai.signal_json from public;

create function horai.signal(job text, key text, name text, payload anycompatible default null::text, idempotency_key text default null)
returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return horai.signal_json(job, key, name, horai.json_of(payload), idempotency_key);
end $$;
revoke execute on function horai.signal from public;

-- Records a finished step in the caller's transaction, together with what the step has written there. False: the claim is over, and nothing
-- is recorded. The instance's row stays locked until the transaction ends.
create function horai.record_step(instance bigint, attempt integer, fence bigint, node bigint, name text, n integer, result json)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    caller record := horai.caller_place();
    owner integer;
begin
    select live.tenant_id into owner from horai.instance_live live join horai.job on job.id = live.job_id
    where live.id = record_step.instance and live.state = 1 and live.attempt = record_step.attempt and live.fence = record_step.fence
        and live.node = record_step.node and live.tenant_id = caller.tenant_id and (caller.jobs is null or job.name = any (caller.jobs))
    for share of live;
    if not found then
        return false;
    end if;
    insert into horai.step (instance_id, tenant_id, kind, progress, n, tries, fence, started_at, finished_at, name, result)
    values (record_step.instance, owner, 1, 1, record_step.n, 1, record_step.fence, clock_timestamp(), clock_timestamp(), record_step.name,
        record_step.result)
    on conflict on constraint step_pkey do update set progress = 1, tries = step.tries + 1, fence = excluded.fence,
        finished_at = excluded.finished_at, until = null, error_type = null, error_msg = null, result = excluded.result
    where step.progress = 0;
    return true;
end $$;
revoke execute on function horai.record_step from public;

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
        execute format('grant execute on function horai.signal, horai.signal_json, horai.record_step to %I', held.role);
    end loop;
end $$;
