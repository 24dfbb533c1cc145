-- Every write may carry an Idempotency-Key (docs/decisions/0023): the row of the key keeps the answer, and the janitor counts
-- the rows, so that one tenant cannot fill the disk with them.

-- The answer to replay, written in the transaction that took the key. A create or a trigger stores none: a repeat of those is
-- told the id and the state of the object. size: bytes of the answer as stored.
alter table horai.idempotency_key
    add column status smallint,
    add column headers json,
    add column body bytea,
    add column size integer not null default 0;

-- Serves the deletion of old keys and, without a look at the table, the count of keys and bytes per tenant.
drop index horai.idempotency_key_created;
create index idempotency_key_created on horai.idempotency_key (created_at) include (tenant_id, size);

-- The last count of the janitor. A tenant over a limit gets 429 for every new key; repeats of its older keys are answered.
create table horai.idempotency_load (
    tenant_id integer primary key,
    keys bigint not null,
    bytes bigint not null
);

-- A put with the version, the time and the payload of the live instance is a repeat: it changes nothing. So is one that
-- repeats the last finished instance, unless it says `again`. A put without a payload has none to differ. The time
-- of a put is the fire time: a retry moves execute_time and leaves it alone.
-- The rules of put are those of core/reschedule.py and accept/puts.py.
create function horai.repeats(wish horai.wish, version bigint, fire_time timestamptz, payload json) returns boolean
language sql immutable as $$
    select coalesce(wish.version = repeats.version and wish.at = repeats.fire_time
        and (wish.payload is null or wish.payload::text = repeats.payload::text), false)
$$;
revoke execute on function horai.repeats from public;

-- moves: INIT -> INIT, FAIL -> FAIL
-- The key has a live row, which is locked: what has not started is moved, what runs is replaced. Null when it has none.
create or replace function horai.put_over_live(wish horai.wish) returns horai.put_answer
language plpgsql as $$
declare
    live horai.instance_live;
    moved horai.instance_live;
begin
    select * into live from horai.instance_live held where held.job_id = wish.job_id and held.key = wish.key for update;
    if not found then
        return null;
    end if;
    if wish.version < live.version or horai.repeats(wish, live.version, live.fire_time, live.payload) then
        if live.state <> 1 then -- while it was locked, a claimer may have passed it over
            perform horai.tell_lane(live.lane, live.shard, live.due);
        end if;
        return row('IGNORED', live.id, horai.state_name(live.state), live.execute_time)::horai.put_answer;
    end if;
    if live.state = 1 then
        perform horai.end_live(live, 2::smallint, json_build_object(
            'idemKey', horai.idem_key(live.job_id, live.born_for, live.slot), 'reason', 'SUPERSEDED', 'executeTime', wish.at));
        wish.payload := coalesce(wish.payload, live.payload);
        wish.version := coalesce(wish.version, live.version);
        moved := horai.insert_wish(wish, live.id, live.fence);
        perform horai.tell_lane(moved.lane, moved.shard, moved.due);
        return row('SUPERSEDED', moved.id, 'INIT', moved.execute_time)::horai.put_answer;
    end if;
    update horai.instance_live waiting
    set execute_time = wish.at, due = greatest(wish.at, clock_timestamp()), fire_time = wish.at, payload = coalesce(wish.payload, waiting.payload),
        version = coalesce(wish.version, waiting.version), events = waiting.events + 1, updated_at = clock_timestamp()
    where waiting.id = live.id and waiting.state in (0, 3, 6) returning waiting.* into strict moved;
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    values (moved.tenant_id, moved.job_id, moved.id, moved.events, 'INSTANCE_RESCHEDULED', json_build_object(
        'idemKey', horai.idem_key(moved.job_id, moved.born_for, moved.slot), 'executeTime', moved.execute_time,
        'was', live.execute_time, 'version', moved.version));
    perform horai.tell_lane(moved.lane, moved.shard, moved.due);
    return row('UPDATED', moved.id, horai.state_name(moved.state), moved.execute_time)::horai.put_answer;
end $$;

-- The key has no live row: it is inserted first, and history is read by a later statement. With the key taken, whatever
-- finished before is visible there. Null when somebody else has taken the key meanwhile: then it is decided again.
create or replace function horai.put_fresh(wish horai.wish) returns horai.put_answer
language plpgsql as $$
declare
    made horai.instance_live := horai.insert_wish(wish);
    past record;
begin
    if made.id is null then
        return null;
    end if;
    select bool_or(state = 2) as succeeded, max(version) as version, max(fence) as fence, array_agg(id) filter (where state = 4) as dead,
        (array_agg(row('IGNORED', id, horai.state_name(state), execute_time)::horai.put_answer order by finished_at desc))[1] as last,
        (array_agg(horai.repeats(wish, version, fire_time, payload) order by finished_at desc))[1] as is_repeat
    into past from horai.instance_history where job_id = wish.job_id and key = wish.key;
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
