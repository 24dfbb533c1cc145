-- Encrypted jobs: payloads, results, error texts and notes are sealed by the processes that use them (docs/guides/encryption.md,
-- docs/decisions/0042). The server sees envelopes only.

-- Set when the job is created, from its definition; it never changes.
alter table horai.job add column encrypted boolean not null default false;

-- The SQL functions have no key. For an encrypted job they store an envelope that the SDK has sealed, and refuse any other payload.
-- place_of says in `again`, which put sets afterwards, whether the job is encrypted: another attribute of the type would break
-- the statements of nodes of an earlier version once more.
create or replace function horai.place_of(reference text) returns horai.wish
language plpgsql as $$
declare
    isolation text := current_setting('transaction_isolation');
    caller record;
    job_name text;
    place horai.wish;
begin
    if isolation in ('repeatable read', 'serializable') then
        perform horai.refuse('HR422',
            format('The transaction is %s; instances are added and cancelled under READ COMMITTED only.', upper(isolation)),
            'What others have committed since it began must be seen. Use a transaction of its own for this.');
    end if;
    caller := horai.caller_place();
    place.tenant_id := caller.tenant_id;
    if reference ~ '^[0-9]{1,18}$' then
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload, job.name, job.metered, job.encrypted
        into place.job_id, place.lane, place.job_payload, job_name, place.metered, place.again
        from horai.job where job.tenant_id = place.tenant_id and job.id = reference::bigint and job.deleted_at is null for key share;
    else
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload, job.name, job.metered, job.encrypted
        into place.job_id, place.lane, place.job_payload, job_name, place.metered, place.again
        from horai.job where job.tenant_id = place.tenant_id and job.name = reference and job.deleted_at is null for key share;
    end if;
    if not found or job_name <> all (caller.jobs) then
        perform horai.refuse('HR404', format('There is no job %L.', left(coalesce(reference, ''), 128)),
            format('`horai jobs list` has the jobs; the tenant asked is %L (setting horai.tenant).', left(caller.tenant_name, 128)), 'job');
    end if;
    return place;
end $$;

-- Refuses a payload of an encrypted job that is not an envelope under a data key of its tenant. The lock on the key keeps it
-- from being erased before the transaction ends, as `Keyring.seal` does. The error does not repeat the payload.
create function horai.check_sealed(place horai.wish, payload json) returns void
language plpgsql as $$
begin
    if payload is not null and json_typeof(payload) = 'object' and payload ->> '$enc' = '1'
        and (select array_agg(member order by member) from json_object_keys(payload) as member) = array['$enc', 'c', 'k', 'n'] then
        perform from horai.data_key own where own.tenant_id = place.tenant_id and own.id = payload ->> 'k' for key share;
        if found then
            return;
        end if;
    end if;
    if payload is not null then
        perform horai.refuse('HR422', 'job: is encrypted, and SQL functions have no key to seal a payload.',
            'Use the REST API or the SDK, also with conn=; without a payload the instance gets that of the job.', 'job');
    end if;
end $$;
revoke execute on function horai.check_sealed from public;

create or replace function horai.put_json(
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
    wish := horai.place_of(job);
    if wish.again then
        perform horai.check_sealed(wish, payload);
    else
        payload := horai.checked_payload(payload);
    end if;
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

create or replace function horai.enqueue_json(job text, payload json default null, execute_time timestamptz default null) returns horai.enqueue_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    wish horai.wish;
    made horai.instance_live;
begin
    perform horai.check_time(execute_time, 'execute_time');
    wish := horai.place_of(job);
    if wish.again then
        perform horai.check_sealed(wish, payload);
    else
        payload := horai.checked_payload(payload);
    end if;
    wish.at := date_trunc('milliseconds', coalesce(execute_time, clock_timestamp()));
    wish.payload := payload;
    made := horai.insert_wish(wish);
    perform horai.tell_lane(made.lane, made.shard, made.due);
    return row(made.id, made.execute_time)::horai.enqueue_answer;
end $$;

-- moves: -> INIT
-- One instance per payload (null: the job's), in one statement; their ids in the order of the payloads.
create or replace function horai.enqueue_many_json(job text, payloads json[], execute_times timestamptz[] default null) returns setof bigint
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
    if place.metered then
        perform horai.charge(place.tenant_id, cardinality(payloads),
            (select max(octet_length(given.payload::text)) from unnest(payloads) as given(payload)));
    end if;
    if place.again then
        perform horai.check_sealed(place, given.payload) from unnest(payloads) as given(payload);
    end if;
    with fresh as (
        insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
        select item.id, place.job_id, place.tenant_id, place.lane, item.id % 32, item.at, item.at, item.at, greatest(item.at, clock_timestamp()),
            -item.id, coalesce(item.payload, place.job_payload)
        from (
            select nextval('horai.instance_id') as id, date_trunc('milliseconds', coalesce(given.at, clock_timestamp())) as at,
                case when place.again then given.payload else horai.checked_payload(given.payload) end as payload
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

-- Parked messages: a process with an encryption key seals the bodies, since a message that cannot be read may be one for an
-- encrypted job. An envelope of 64 kB has at most 117 kB.
alter table horai.parked_event
    add column sealed boolean not null default false,
    drop constraint parked_event_body_check,
    add constraint parked_event_body_check check (octet_length(body) <= 131072);
