-- Calls that are added once (docs/guides/calls.md, docs/decisions/0057): `unique` and `debounce`.

-- The instance that stands for a job and its arguments. kind: 1 unique, 2 debounce. digest: SHA-256 of the canonical arguments, or for an
-- encrypted job an HMAC of 41 bytes as in payload_digest. held_until: the end of the window; the instance holds the row while it is live, too.
-- A transaction that adds such a call locks the row: of two at once, the second sees what the first has committed.
create table horai.unique_call (
    job_id bigint not null,
    kind smallint not null check (kind between 1 and 2),
    digest bytea not null check (octet_length(digest) in (32, 41)),
    tenant_id integer not null,
    instance_id bigint not null,
    held_until timestamptz not null,
    primary key (job_id, kind, digest)
);
revoke all on horai.unique_call from public;

-- The digest of arguments. jsonb makes the order of members, white space and escapes equal; a number stays as it is written (1 is not 1.0).
create function horai.call_digest(payload json) returns bytea
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return sha256(convert_to(coalesce(payload::jsonb::text, ''), 'UTF8'));
end $$;
revoke execute on function horai.call_digest from public;

-- moves: -> INIT, INIT -> INIT
-- Adds calls of one job in the order of their digests, so that two batches cannot wait for each other. A digest of null is computed here.
-- A unique call (1) is IGNORED while another one of its arguments is live or within its window. A debounced call (2) moves the instance of the
-- call before it, if no worker has started it (UPDATED). Otherwise the call is INSERTED. The lock comes first, and each statement after it
-- sees what other transactions have committed before it (READ COMMITTED): an instance that holds the row cannot be missed. SQL clients come here
-- with the rights of the owner: pg_temp comes last, so that a type of their session does not stand for one of ours.
create function horai.add_calls(job bigint, tenant integer, lane integer, own_payload json, is_metered boolean, kinds smallint[],
    digests bytea[], times timestamptz[], payloads json[], spans interval[])
returns table (ordinal bigint, verdict text, chosen bigint, chosen_lane integer, chosen_due timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    call record;
    held horai.unique_call;
    live horai.instance_live;
    is_held boolean;
    fresh bigint;
    moment timestamptz;
begin
    if is_metered then
        perform horai.charge(add_calls.tenant, 0, null);  -- every other transaction locks the quota first, too
    end if;
    for call in
        select given.kind, given.at, given.payload, given.span, given.place, coalesce(given.digest, horai.call_digest(given.payload)) as digest
        from unnest(kinds, digests, times, payloads, spans) with ordinality as given(kind, digest, at, payload, span, place)
        order by 6, 5
    loop
        ordinal := call.place;
        verdict := null;
        for round in 1 .. 100 loop
            select * into held from horai.unique_call own
            where own.job_id = add_calls.job and own.kind = call.kind and own.digest = call.digest for update;
            is_held := found;
            if is_held and call.kind = 1 then
                perform from horai.instance_live known where known.id = held.instance_id;
                if found or held.held_until > clock_timestamp() then
                    verdict := 'IGNORED';
                    chosen := held.instance_id;
                    chosen_lane := null;
                    chosen_due := null;
                    exit;
                end if;
            end if;
            moment := date_trunc('milliseconds', case when call.kind = 1 then coalesce(call.at, clock_timestamp()) else clock_timestamp() + call.span end);
            if is_held and call.kind = 2 then
                select * into live from horai.instance_live known
                where known.id = held.instance_id and known.state = 0 and known.attempt = 0 for update;
                if found then
                    update horai.instance_live waiting
                    set execute_time = moment, fire_time = moment, due = greatest(moment, clock_timestamp()), events = waiting.events + 1,
                        updated_at = clock_timestamp()
                    where waiting.id = live.id returning waiting.id, waiting.lane, waiting.due into chosen, chosen_lane, chosen_due;
                    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
                    values (live.tenant_id, live.job_id, live.id, live.events + 1, 'INSTANCE_RESCHEDULED', json_build_object('idemKey',
                        horai.idem_key(live.job_id, live.born_for, live.slot), 'executeTime', moment, 'was', live.execute_time, 'version', live.version));
                    verdict := 'UPDATED';
                    exit;
                end if;
            end if;
            fresh := nextval('horai.instance_id');
            if is_held then
                update horai.unique_call own set instance_id = fresh, held_until = clock_timestamp() + call.span
                where own.job_id = add_calls.job and own.kind = call.kind and own.digest = call.digest;
            else
                insert into horai.unique_call (job_id, kind, digest, tenant_id, instance_id, held_until)
                values (add_calls.job, call.kind, call.digest, add_calls.tenant, fresh, clock_timestamp() + call.span)
                on conflict on constraint unique_call_pkey do nothing;
                continue when not found;  -- another transaction was faster: it holds the row now
            end if;
            if is_metered then
                perform horai.charge(add_calls.tenant, 1, octet_length(call.payload::text));
            end if;
            insert into horai.instance_live as made (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
            values (fresh, add_calls.job, add_calls.tenant, add_calls.lane, fresh % 32, moment, moment, moment, greatest(moment, clock_timestamp()),
                -fresh, coalesce(call.payload, own_payload))
            returning made.id, made.lane, made.due into chosen, chosen_lane, chosen_due;
            verdict := 'INSERTED';
            exit;
        end loop;
        if verdict is null then
            raise exception using errcode = 'serialization_failure', message = 'The call kept changing under 100 looks.', hint = 'Try again.';
        end if;
        return next;
    end loop;
end $$;
revoke execute on function horai.add_calls from public;

create type horai.call_answer as (decision text, instance_id bigint);

-- The same for calls in the transaction of an SQL client. The SDK passes the digests of an encrypted job, which only a process with its key
-- can compute; for any other job they are ignored. One row for each payload, in their order.
create function horai.enqueue_calls_json(job text, payloads json[], kind integer, span interval, execute_time timestamptz, digests bytea[])
returns setof horai.call_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set enable_seqscan = off as $$
declare
    argument text := case when kind = 1 then 'within' else 'debounce' end;
    wish horai.wish;
    stored json[];
    keyed bytea[];
    indexed json[];
    is_keyed boolean;
    is_indexed boolean := false;
    made record;
begin
    perform horai.check_time(execute_time, 'execute_time');
    if span is null or span < interval '0' or span > interval '7 days' or kind = 2 and span = interval '0' then
        perform horai.refuse('HR422', format('%s: is not between %s and 7d.', argument, case when kind = 1 then '0s' else '1ms' end),
            'Pass an interval such as ''10 minutes''.', argument);
    end if;
    if cardinality(payloads) > 10000 then
        perform horai.refuse('HR422', 'payloads: are more than 10000.', 'Call it for a part of them at a time.', 'payloads');
    end if;
    wish := horai.place_of(job);
    if wish.again then
        select array_agg(parts.stored order by given.place), array_agg(parts.digests order by given.place), bool_or(parts.is_indexed)
        into stored, indexed, is_indexed
        from unnest(payloads) with ordinality as given(payload, place) cross join horai.part_sealed(wish, given.payload) parts;
        select array_agg(case when given.payload is not null then given.digest end order by given.place),
            bool_and(given.payload is null or coalesce(octet_length(given.digest) = 41, false))
        into keyed, is_keyed
        from unnest(payloads, digests) with ordinality as given(payload, digest, place) where given.place <= cardinality(payloads);
        if not is_keyed then
            perform horai.refuse('HR422', 'job: is encrypted, and SQL functions have no key to compare its payloads.',
                'Use the REST API or the SDK, also with conn=.', 'job');
        end if;
    else
        stored := array(select horai.checked_payload(given.payload) from unnest(payloads) with ordinality as given(payload, place) order by given.place);
        keyed := array_fill(null::bytea, array[cardinality(stored)]);
    end if;
    for made in
        select * from horai.add_calls(wish.job_id, wish.tenant_id, wish.lane, wish.job_payload, coalesce(wish.metered, false),
            array_fill(kind::smallint, array[cardinality(stored)]), keyed, array_fill(execute_time, array[cardinality(stored)]), stored,
            array_fill(span, array[cardinality(stored)])) order by ordinal
    loop
        if made.verdict = 'INSERTED' and is_indexed then
            perform horai.index_payloads(array[made.chosen], array[indexed[made.ordinal]], array[0::bigint]);
        end if;
        if made.chosen_lane is not null then
            perform horai.tell_lane(made.chosen_lane, (made.chosen % 32)::integer, made.chosen_due);
        end if;
        return next row(made.verdict, made.chosen)::horai.call_answer;
    end loop;
end $$;
revoke execute on function horai.enqueue_calls_json from public;

-- Adds an instance unless another one with the same payload is live, or was added by this function less than `within` ago.
create function horai.enqueue_unique(job text, payload anycompatible default null::text, within interval default interval '0',
    execute_time timestamptz default null, out decision text, out instance_id bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    select made.decision, made.instance_id into decision, instance_id
    from horai.enqueue_calls_json(job, array[horai.json_of(payload)], 1, within, execute_time, null) made;
end $$;
revoke execute on function horai.enqueue_unique from public;

-- Adds an instance that is due after `debounce`. A later call with the same payload moves it, until a worker has started it.
create function horai.enqueue_debounced(job text, payload anycompatible default null::text, debounce interval default null,
    out decision text, out instance_id bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    select made.decision, made.instance_id into decision, instance_id
    from horai.enqueue_calls_json(job, array[horai.json_of(payload)], 2, debounce, null, null) made;
end $$;
revoke execute on function horai.enqueue_debounced from public;

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
        'horai.enqueue_unique, horai.enqueue_debounced, horai.enqueue_calls_json, '
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
        execute format('grant execute on function horai.enqueue_unique, horai.enqueue_debounced, horai.enqueue_calls_json to %I', held.role);
    end loop;
end $$;
