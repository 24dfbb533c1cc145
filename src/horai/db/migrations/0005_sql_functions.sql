-- put, enqueue and cancel for services in any language, inside their own transaction (docs/guides/sql.md).
--
-- The public functions, at the end, run with the rights of their owner: a client needs none on any table. So nothing of the
-- caller's may change what they mean: the search_path is pinned, pg_temp last (a caller may have made a type `text` there),
-- every relation is named with its schema, and a literal with a backslash is an E'' one. The functions they are made of
-- have no rights of their own and are granted to nobody.
-- A session keeps their plans, and the first is made while the tables may be small: hence no sequential scans.
-- The rules of put are those of core/reschedule.py and accept/puts.py; a test holds the two ways against each other.

create type horai.put_answer as (decision text, instance_id bigint, state text, execute_time timestamptz);
create type horai.enqueue_answer as (instance_id bigint, execute_time timestamptz);
create type horai.cancel_answer as (instance_id bigint, state text, reason text, was text);

-- What is asked for: where it goes, and what with. A null payload is the job's, a null key none.
create type horai.wish as (
    job_id bigint, tenant_id integer, lane integer, job_payload json,
    key text, at timestamptz, payload json, version bigint, again boolean
);

-- HR404 not found, HR413 too large, HR422 invalid; the column is the argument at fault.
create function horai.refuse(code text, said text, hint text, argument text default '') returns void
language plpgsql as $$
begin
    raise exception using errcode = code, message = said, hint = hint, column = argument;
end $$;

-- The place of a job's instances, held until the transaction ends: they land where it says, or a pause that follows moves
-- them. READ COMMITTED: under another level the later looks of a put would not see what others have committed meanwhile.
create function horai.place_of(reference text) returns horai.wish
language plpgsql as $$
declare
    isolation text := current_setting('transaction_isolation');
    tenant_name text := coalesce(nullif(current_setting('horai.tenant', true), ''), 'default');
    place horai.wish;
begin
    if isolation in ('repeatable read', 'serializable') then
        perform horai.refuse('HR422',
            format('The transaction is %s; instances are added and cancelled under READ COMMITTED only.', upper(isolation)),
            'What others have committed since it began must be seen. Use a transaction of its own for this.');
    end if;
    select tenant.id into place.tenant_id from horai.tenant where tenant.name = tenant_name;
    if not found then
        perform horai.refuse('HR404', format('There is no tenant %L.', left(tenant_name, 128)),
            'The setting horai.tenant names it; without that it is ''default''.', 'tenant');
    end if;
    if reference ~ '^[0-9]{1,18}$' then
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload
        into place.job_id, place.lane, place.job_payload
        from horai.job where job.tenant_id = place.tenant_id and job.id = reference::bigint and job.deleted_at is null for key share;
    else
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload
        into place.job_id, place.lane, place.job_payload
        from horai.job where job.tenant_id = place.tenant_id and job.name = reference and job.deleted_at is null for key share;
    end if;
    if not found then
        perform horai.refuse('HR404', format('There is no job %L.', left(coalesce(reference, ''), 128)),
            format('`horai jobs list` has the jobs; the tenant asked is %L (setting horai.tenant).', left(tenant_name, 128)), 'job');
    end if;
    return place;
end $$;

create function horai.check_key(key text) returns void
language plpgsql as $$
begin
    if key is null or char_length(key) not between 1 and 512 then
        perform horai.refuse('HR422', 'key: is not 1 to 512 characters long.', 'Name the business unit, such as article:42.', 'key');
    end if;
end $$;

create function horai.check_time(at timestamptz, argument text) returns void
language plpgsql as $$
begin
    if at < '1970-01-01 00:00:00+00' or at >= '9000-01-01 00:00:00+00' then
        perform horai.refuse('HR422', format('%s: is not between the years 1970 and 9000.', argument), 'Null means now.', argument);
    end if;
end $$;

-- The payload as it is kept: JSON null is none. The type has seen to it that it is JSON; what REST refuses besides is
-- looked for only where a glance says that it might be there. Names that occur twice are not.
create function horai.checked_payload(payload json) returns json
language plpgsql as $$
declare
    written text := payload;
    bare text;
    fault text;
begin
    if payload is null or json_typeof(payload) = 'null' then
        return null;
    end if;
    if octet_length(written) > 1048576 then
        perform horai.refuse('HR413', 'payload: is larger than 1048576 bytes.', 'Keep large data elsewhere and send a reference.', 'payload');
    end if;
    if written !~ E'\\\\u|[eE][+]?[0-9]{3}|[0-9]{130}' and length(written) - length(translate(written, '[{', '')) <= 64 then
        return payload;
    end if;
    begin
        bare := regexp_replace(written, E'"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"', '""', 'g');
        fault := case
            when payload::jsonb is null then null
            when exists (
                select from regexp_matches(bare, '[0-9][0-9.eE+-]*', 'g') as number(parts)
                where length(parts[1]) > 400 or (parts[1] ~ '[.eE]' and parts[1]::numeric >= 1.7976931348623158e308)
            ) then 'a number is too large or too long'
        end;
    exception when data_exception or program_limit_exceeded then
        fault := sqlerrm;
    end;
    bare := translate(regexp_replace(bare, '[^][{}]', '', 'g'), '[]{}', '()()');
    for level in 1 .. 64 loop
        bare := replace(bare, '()', '');
    end loop;
    if bare <> '' then
        fault := 'it is nested deeper than 64 levels';
    end if;
    if fault is not null then
        perform horai.refuse('HR422', format('payload: %s.', fault), 'No NUL, no half of a surrogate pair, no number beyond a double.', 'payload');
    end if;
    return payload;
end $$;

-- Wakes, in the words of core/wakes.py, delivered by the caller's commit. A notifying commit holds a lock that the whole
-- server shares: so what the next sweep finds in time is not told, and a row behind an earlier wake of its place is found by
-- the same look. The second wake of a lane names all its shards, the twenty-first lane everything: a transaction that goes
-- on adding soon has nothing more to say. horai.told is what it has said; it ends, or is rolled back, with what it told.
create function horai.tell_lane(lane integer, shard integer, due timestamptz) returns void
language plpgsql as $$
declare
    told text := coalesce(current_setting('horai.told', true), '');
    moment bigint := extract(epoch from due) * 1000000;
    entry text := format(E'w:(\\*|[0-9]{1,2}):%s:([0-9]{1,17})', lane);
    known text[];
    wake text;
begin
    if lane = 0 or told = '*' or due > clock_timestamp() + interval '30 seconds' or current_setting('horai.sql_wakeup', true) = 'poll' then
        return;
    end if;
    known := regexp_match(told, entry);
    if known[1] in ('*', shard::text) and known[2]::bigint <= moment then
        return;
    end if;
    wake := format('w:%s:%s:%s', case when known is null then coalesce(shard::text, '*') else '*' end, lane, moment);
    told := case when known is null then ltrim(told || ' ' || wake) else regexp_replace(told, entry, wake) end;
    if length(told) - length(replace(told, ' ', '')) >= 20 then
        wake := '*';
        told := '*';
    end if;
    perform pg_notify('horai_wake', wake), set_config('horai.told', told, true);
end $$;

-- moves: -> INIT
-- The new row; none when its key has a live one already. supersedes and fence continue the chain of what it replaces.
create function horai.insert_wish(wish horai.wish, supersedes bigint default null, fence bigint default 0) returns horai.instance_live
language plpgsql as $$
declare
    fresh bigint := nextval('horai.instance_id');
    made horai.instance_live;
begin
    insert into horai.instance_live as live
        (id, job_id, tenant_id, lane, shard, key, fire_time, execute_time, born_for, due, slot, payload, version, supersedes, fence)
    values (fresh, wish.job_id, wish.tenant_id, wish.lane, fresh % 32, wish.key, wish.at, wish.at, wish.at,
        greatest(wish.at, clock_timestamp()), -fresh, coalesce(wish.payload, wish.job_payload), wish.version,
        insert_wish.supersedes, insert_wish.fence)
    on conflict (job_id, key) where key is not null do nothing
    returning live.* into made;
    return made;
end $$;

-- moves: INIT | FAIL | BLOCKED | RUNNING -> CANCELLED
-- Ends a live row that the caller has locked. Whoever runs it is told that its claim is over; what it has sent stays sent.
create function horai.end_live(live horai.instance_live, reason smallint, data json) returns void
language plpgsql as $$
begin
    delete from horai.instance_live gone where gone.id = live.id;
    insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence, node,
        version, supersedes, replay_of, tenant_id, lane, attempt, retry_count, events, state, reason, key, payload, error_code, error_msg)
    values (live.id, live.job_id, live.fire_time, live.execute_time, live.born_for, live.slot, live.created_at, live.claimed_at,
        clock_timestamp(), live.fence, live.node, live.version, live.supersedes, live.replay_of, live.tenant_id, live.lane, live.attempt,
        live.retry_count, live.events + 1, 5, end_live.reason, live.key, live.payload, live.error_code, live.error_msg);
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    values (live.tenant_id, live.job_id, live.id, live.events + 1, 'INSTANCE_CANCELLED', end_live.data);
    if live.state = 1 and current_setting('horai.sql_wakeup', true) is distinct from 'poll' then
        perform pg_notify('horai_wake', format('o:%s:%s', live.id, live.fence));
    end if;
end $$;

-- moves: INIT -> INIT, FAIL -> FAIL
-- The key has a live row, which is locked: what has not started is moved, what runs is replaced. Null when it has none.
create function horai.put_over_live(wish horai.wish) returns horai.put_answer
language plpgsql as $$
declare
    live horai.instance_live;
    moved horai.instance_live;
begin
    select * into live from horai.instance_live held where held.job_id = wish.job_id and held.key = wish.key for update;
    if not found then
        return null;
    end if;
    if wish.version < live.version then
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
create function horai.put_fresh(wish horai.wish) returns horai.put_answer
language plpgsql as $$
declare
    made horai.instance_live := horai.insert_wish(wish);
    past record;
begin
    if made.id is null then
        return null;
    end if;
    select bool_or(state = 2) as succeeded, max(version) as version, max(fence) as fence, array_agg(id) filter (where state = 4) as dead,
        (array_agg(row('IGNORED', id, horai.state_name(state), execute_time)::horai.put_answer order by finished_at desc))[1] as last
    into past from horai.instance_history where job_id = wish.job_id and key = wish.key;
    if wish.version < past.version or (past.succeeded and not wish.again) then
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

create function horai.put_instance(
    job text, key text, execute_time timestamptz default null, payload json default null, version bigint default null, again boolean default false
) returns horai.put_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set enable_seqscan = off as $$
declare
    wish horai.wish;
    answer horai.put_answer;
begin
    perform horai.check_key(key), horai.check_time(execute_time, 'execute_time');
    if version not between 0 and 4611686018427387903 then
        perform horai.refuse('HR422', 'version: is not between 0 and 4611686018427387903.', 'A higher one is newer; null means no order.', 'version');
    end if;
    payload := horai.checked_payload(payload);
    wish := horai.place_of(job);
    wish.key := key;
    wish.at := coalesce(execute_time, clock_timestamp());
    wish.payload := payload;
    wish.version := version;
    wish.again := coalesce(again, false);
    for round in 1 .. 100 loop
        answer := horai.put_over_live(wish);
        if answer.decision is null then
            answer := horai.put_fresh(wish);
        end if;
        if answer.decision is not null then
            return answer;
        end if;
    end loop;
    raise exception using errcode = 'serialization_failure', message = 'The key kept changing under 100 looks.', hint = 'Try again.';
end $$;

create function horai.enqueue(job text, payload json default null, execute_time timestamptz default null) returns horai.enqueue_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    wish horai.wish;
    made horai.instance_live;
begin
    perform horai.check_time(execute_time, 'execute_time');
    payload := horai.checked_payload(payload);
    wish := horai.place_of(job);
    wish.at := date_trunc('milliseconds', coalesce(execute_time, clock_timestamp()));
    wish.payload := payload;
    made := horai.insert_wish(wish);
    perform horai.tell_lane(made.lane, made.shard, made.due);
    return row(made.id, made.execute_time)::horai.enqueue_answer;
end $$;

-- moves: -> INIT
-- One instance per payload (null: the job's), in one statement; their ids in the order of the payloads.
create function horai.enqueue_many(job text, payloads json[], execute_times timestamptz[] default null) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
    made record;
begin
    if cardinality(payloads) <> coalesce(cardinality(execute_times), cardinality(payloads)) then
        perform horai.refuse('HR422', 'execute_times: are not as many as the payloads.', 'One for each payload, or null for all: now.', 'execute_times');
    end if;
    perform horai.check_time(at, 'execute_times') from unnest(execute_times) as wished(at);
    place := horai.place_of(job);
    with fresh as (
        insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
        select item.id, place.job_id, place.tenant_id, place.lane, item.id % 32, item.at, item.at, item.at, greatest(item.at, clock_timestamp()),
            -item.id, coalesce(item.payload, place.job_payload)
        from (
            select nextval('horai.instance_id') as id, date_trunc('milliseconds', coalesce(given.at, clock_timestamp())) as at,
                horai.checked_payload(given.payload) as payload
            from unnest(payloads, execute_times) with ordinality as given(payload, at, position)
            order by given.position
        ) item
        returning id, due
    )
    select array_agg(id order by id) as ids, min(due) as due, case when count(*) = 1 then min(id) % 32 end as shard into made from fresh;
    if made.ids is not null then
        perform horai.tell_lane(place.lane, made.shard::integer, made.due);
    end if;
    return query select unnest(made.ids);
end $$;

-- Cancels the live instance of a key. No row: it has none, it may have finished. was RUNNING: what it has sent stays sent.
create function horai.cancel_instance(job text, key text) returns setof horai.cancel_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
    live horai.instance_live;
begin
    perform horai.check_key(key);
    place := horai.place_of(job);
    select * into live from horai.instance_live held where held.job_id = place.job_id and held.key = cancel_instance.key for update;
    if found then
        perform horai.end_live(live, 1::smallint, json_build_object(
            'idemKey', horai.idem_key(live.job_id, live.born_for, live.slot), 'reason', 'USER'));
        return next row(live.id, 'CANCELLED', 'USER', horai.state_name(live.state))::horai.cancel_answer;
    end if;
end $$;

revoke execute on function
    horai.refuse, horai.place_of, horai.check_key, horai.check_time, horai.checked_payload, horai.tell_lane, horai.insert_wish,
    horai.end_live, horai.put_over_live, horai.put_fresh, horai.put_instance, horai.enqueue, horai.enqueue_many, horai.cancel_instance
from public;

-- What a role needs to be a client: these four functions, and no table at all. Run by the owner of the schema.
create function horai.grant_client(role_name text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema horai to %I', role_name);
    execute format('grant execute on function horai.put_instance, horai.enqueue, horai.enqueue_many, horai.cancel_instance to %I', role_name);
end $$;
revoke execute on function horai.grant_client from public;
