-- Search in encrypted jobs (docs/guides/encryption.md, docs/decisions/0042): digests of declared fields of their payloads.

-- The declared paths, such as {orderId,customer.id}. Set when the job is created, from its definition; they never change.
alter table horai.job add column search_paths text[] not null default '{}';

-- One row per instance and declared path that its payload has a value for. instance_id 0: the payload of the job itself, whose rows are
-- copied with the payload. path: the position in search_paths. digest: an HMAC under a key derived from a data key of the tenant,
-- the job and the path; its bytes 2 to 9 are the id of that data key. A row follows its instance to history, since it names no table.
create table horai.payload_digest (
    tenant_id integer not null,
    job_id bigint not null,
    instance_id bigint not null,
    path smallint not null,
    digest bytea not null check (octet_length(digest) = 41),
    primary key (instance_id, job_id, path)
);
create index payload_digest_search on horai.payload_digest (tenant_id, job_id, path, digest);

-- Index live instances that this transaction has inserted, or given another payload. `digests` has the digests of each by path, null for a
-- path without a value. An instance without digests got its payload from another one, or from the job (0): it gets a copy of its rows.
create function horai.index_payloads(ids bigint[], digests json[], sources bigint[]) returns void
language plpgsql volatile set search_path = pg_catalog as $$
begin
    delete from horai.payload_digest where instance_id = any (ids);
    insert into horai.payload_digest (tenant_id, job_id, instance_id, path, digest)
    select live.tenant_id, live.job_id, live.id, array_position(job.search_paths, given.path), decode(given.digest, 'hex')
    from unnest(ids, digests) as item(id, digests)
    join horai.instance_live live on live.id = any (array[item.id])
    join horai.job on job.id = any (array[live.job_id])
    cross join json_each_text(item.digests) as given(path, digest)
    where item.digests is not null and given.digest is not null
    union all
    select live.tenant_id, live.job_id, live.id, own.path, own.digest
    from unnest(ids, digests, sources) as item(id, digests, source)
    join horai.instance_live live on live.id = any (array[item.id])
    join horai.payload_digest own on own.instance_id = any (array[item.source]) and own.job_id = any (array[live.job_id])
    where item.digests is null;
end $$;

-- The same for the payload of the job itself; null: it has none any more.
create function horai.index_job_payload(job bigint, digests json) returns void
language plpgsql volatile set search_path = pg_catalog as $$
begin
    delete from horai.payload_digest own where own.instance_id = 0 and own.job_id = index_job_payload.job;
    insert into horai.payload_digest (tenant_id, job_id, instance_id, path, digest)
    select known.tenant_id, known.id, 0, array_position(known.search_paths, given.path), decode(given.digest, 'hex')
    from horai.job known cross join json_each_text(index_job_payload.digests) as given(path, digest)
    where known.id = index_job_payload.job and given.digest is not null;
end $$;

-- The payload of an encrypted job as the SDK passes it: an envelope, with the member `d` if the job has search paths. Returns the envelope
-- to store and the digests to index. Refuses digests of other paths than the job has: its instances would not be found by them.
create function horai.part_sealed(place horai.wish, payload json, out stored json, out digests json, out is_indexed boolean)
language plpgsql as $$
declare
    paths text[] := (select search_paths from horai.job where id = place.job_id);
begin
    is_indexed := paths <> '{}';
    stored := payload;
    if json_typeof(payload) = 'object' and json_typeof(payload -> 'd') = 'object'
        and (select array_agg(member order by member) from json_object_keys(payload) as member) = array['$enc', 'c', 'd', 'k', 'n'] then
        digests := payload -> 'd';
        stored := json_build_object('$enc', payload -> '$enc', 'k', payload -> 'k', 'n', payload -> 'n', 'c', payload -> 'c');
    end if;
    perform horai.check_sealed(place, stored);
    if payload is not null and (select array_agg(path order by path) from json_object_keys(digests) as path)
        is distinct from (select array_agg(path order by path) from unnest(paths) as path) then
        perform horai.refuse('HR422', 'job: has other search paths.', 'Declare the job as it is stored, with the same search_paths.', 'job');
    end if;
end $$;

revoke execute on function horai.index_payloads, horai.index_job_payload, horai.part_sealed from public;

-- The functions of SQL clients, through which the SDK adds instances in a transaction of its caller: they index what they store.
create or replace function horai.put_json(
    job text, key text, execute_time timestamptz default null, payload json default null, version bigint default null, again boolean default false
) returns horai.put_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set enable_seqscan = off as $$
declare
    wish horai.wish;
    sealed record;
    is_indexed boolean := false;
    answer horai.put_answer;
begin
    perform horai.check_key(key), horai.check_time(execute_time, 'execute_time');
    if version not between 0 and 4611686018427387903 then
        perform horai.refuse('HR422', 'version: is not between 0 and 4611686018427387903.', 'A higher one is newer; null means no order.', 'version');
    end if;
    wish := horai.place_of(job);
    if wish.again then
        sealed := horai.part_sealed(wish, payload);
        payload := sealed.stored;
        is_indexed := sealed.is_indexed;
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
            if is_indexed and (answer.decision in ('INSERTED', 'SUPERSEDED') or answer.decision = 'UPDATED' and payload is not null) then
                perform horai.index_payloads(array[answer.instance_id], array[sealed.digests],
                    array[(select coalesce(made.supersedes, 0) from horai.instance_live made where made.id = answer.instance_id)]);
            end if;
            return answer;
        end if;
    end loop;
    raise exception using errcode = 'serialization_failure', message = 'The key kept changing under 100 looks.', hint = 'Try again.';
end $$;

create or replace function horai.enqueue_json(job text, payload json default null, execute_time timestamptz default null) returns horai.enqueue_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    wish horai.wish;
    sealed record;
    is_indexed boolean := false;
    made horai.instance_live;
begin
    perform horai.check_time(execute_time, 'execute_time');
    wish := horai.place_of(job);
    if wish.again then
        sealed := horai.part_sealed(wish, payload);
        payload := sealed.stored;
        is_indexed := sealed.is_indexed;
    else
        payload := horai.checked_payload(payload);
    end if;
    wish.at := date_trunc('milliseconds', coalesce(execute_time, clock_timestamp()));
    wish.payload := payload;
    made := horai.insert_wish(wish);
    if is_indexed then
        perform horai.index_payloads(array[made.id], array[sealed.digests], array[0::bigint]);
    end if;
    perform horai.tell_lane(made.lane, made.shard, made.due);
    return row(made.id, made.execute_time)::horai.enqueue_answer;
end $$;

-- moves: -> INIT
-- One instance per payload (null: the job's), in one statement; their ids in the order of the payloads.
create or replace function horai.enqueue_many_json(job text, payloads json[], execute_times timestamptz[] default null) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
    digests json[];
    is_indexed boolean := false;
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
        select array_agg(part.stored order by given.position), array_agg(part.digests order by given.position), bool_or(part.is_indexed)
        into payloads, digests, is_indexed
        from unnest(payloads) with ordinality as given(payload, position)
        cross join horai.part_sealed(place, given.payload) as part;
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
        if is_indexed then
            perform horai.index_payloads(made.ids, digests, array_fill(0::bigint, array[cardinality(made.ids)]));
        end if;
        perform horai.tell_lane(place.lane, made.shard::integer, made.due);
    end if;
    return query select unnest(made.ids);
end $$;

-- The payload of an entity as it is stored: that of an encrypted job is sealed, as that of an instance. Its runs copy it.
create function horai.payload_of_entity(place horai.wish, payload json) returns json
language plpgsql as $$
begin
    if place.again then
        perform horai.check_sealed(place, payload);
        return payload;
    end if;
    return horai.checked_payload(payload);
end $$;
revoke execute on function horai.payload_of_entity from public;

create or replace function horai.add_entities(job text, keys text[], payloads json[] default null) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
begin
    if cardinality(keys) <> coalesce(cardinality(payloads), cardinality(keys)) then
        perform horai.refuse('HR422', 'payloads: are not as many as the keys.', 'One for each key, or null for none.', 'payloads');
    end if;
    perform horai.check_key(given.key) from unnest(keys) as given(key);
    place := horai.place_of(job);
    return horai.keep_entities(place, keys, array(
        select horai.payload_of_entity(place, item.payload) from unnest(payloads) with ordinality as item(payload, position) order by item.position));
end $$;

create or replace function horai.add_entity(job text, key text, payload json default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
begin
    perform horai.check_key(key);
    place := horai.place_of(job);
    return horai.keep_entities(place, array[key], array[horai.payload_of_entity(place, payload)]) = 1;
end $$;

-- A followed table has no key either: the entities of an encrypted job follow its keys only.
create or replace function horai.follow_entity(tenant text, job text, old_key text, new_key text, payload jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
begin
    select followed.id, followed.tenant_id, case when followed.status = 0 then followed.lane_id else 0 end, followed.payload, followed.metered,
        followed.encrypted
    into place.job_id, place.tenant_id, place.lane, place.job_payload, place.metered, place.again
    from horai.job followed join horai.tenant owner on owner.id = followed.tenant_id
    where owner.name = follow_entity.tenant and followed.name = follow_entity.job and followed.deleted_at is null
        and (followed.definition -> 'refresh') is not null
    for key share of followed;
    if not found then
        return;
    end if;
    if old_key is distinct from new_key and old_key is not null then
        perform horai.drop_entity(place.job_id, old_key);
    end if;
    if new_key is not null then
        perform horai.check_key(new_key);
        perform horai.keep_entities(place, array[new_key], array[horai.payload_of_entity(place, follow_entity.payload::json)]);
    end if;
end $$;
