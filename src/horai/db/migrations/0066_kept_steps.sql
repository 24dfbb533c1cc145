-- Durable steps (docs/guides/durable-steps.md): a put may keep the records of the instance that it moves or replaces, and instances belong to the
-- version of the code that wrote their first record.

-- kind: 7 the version of the code, in n: `version` is the mark of the version that an instance belongs to (1 without one), `offer` is open while it
-- waits for a worker that declares it.
alter table horai.step drop constraint step_kind;
alter table horai.step add constraint step_kind check (kind between 1 and 7) not valid;

-- As in 0054, unless the put of this transaction keeps the records. suspended_until then stays too: a later put without that starts over.
create or replace function horai.start_over() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    if current_setting('horai.keep_steps', true) = 'on' then
        return null;
    end if;
    delete from horai.step where instance_id = new.id;
    update horai.instance_live live set suspended_until = null where live.id = new.id and live.suspended_until is not null;
    return null;
end $$;

-- Gives the records, the signals that were not taken, and the children of instances that this transaction has superseded to their successors.
create function horai.carry_steps(old bigint[], successors bigint[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    insert into horai.step (instance_id, tenant_id, kind, progress, n, tries, fence, started_at, finished_at, until, name, error_type, error_msg, result, child)
    select pair.successor, step.tenant_id, kind, progress, n, tries, fence, started_at, finished_at, until, name, error_type, error_msg, result, child
    from unnest(old, successors) as pair(old, successor) join horai.step on step.instance_id = pair.old
    where step.kind <> 5
    on conflict do nothing;
    update horai.step_signal signal set instance_id = pair.successor
    from unnest(old, successors) as pair(old, successor) where signal.instance_id = pair.old and signal.consumed_at is null;
    update horai.child_call call set parent_id = pair.successor
    from unnest(old, successors) as pair(old, successor) where call.parent_id = pair.old;
end $$;
revoke execute on function horai.carry_steps from public;

-- put_json for a durable function whose finished steps stay finished.
create function horai.put_keeping_steps_json(
    job text, key text, execute_time timestamptz, payload json, version bigint, again boolean
) returns horai.put_answer
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    answer horai.put_answer;
begin
    perform set_config('horai.keep_steps', 'on', true);
    answer := horai.put_json(job, key, execute_time, payload, version, again);
    perform set_config('horai.keep_steps', '', true);
    if answer.decision = 'SUPERSEDED' then
        perform horai.carry_steps(array[made.supersedes], array[made.id]) from horai.instance_live made where made.id = answer.instance_id;
    end if;
    return answer;
end $$;
revoke execute on function horai.put_keeping_steps_json from public;

create function horai.put_keeping_steps(
    job text, key text, execute_time timestamptz default null, payload anycompatible default null::text,
    version bigint default null, again boolean default false
) returns horai.put_answer
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return horai.put_keeping_steps_json(job, key, execute_time, horai.json_of(payload), version, again);
end $$;
revoke execute on function horai.put_keeping_steps from public;

-- As in 0063, with the functions above.
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
        'horai.put_keeping_steps, horai.put_keeping_steps_json, horai.enqueue_unique, horai.enqueue_debounced, horai.enqueue_calls_json, '
        'horai.enqueue_keyed, horai.set_concurrency_keys, horai.enqueue_with, horai.set_call_options, '
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
        execute format('grant execute on function horai.put_keeping_steps, horai.put_keeping_steps_json to %I', held.role);
    end loop;
end $$;
