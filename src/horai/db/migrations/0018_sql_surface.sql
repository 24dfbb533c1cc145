-- Closes the SQL functions against code of their callers, and widens what clients can pass and read
-- (docs/guides/sql.md, docs/decisions/0021-no-code-of-a-caller-under-the-owners-rights.md).

-- A session takes ids in blocks of the cache, and shard = id % 32. A block of 33 moves the first id of each session to the
-- next shard; a block of 32 put every session that adds one row into the same shard.
alter sequence horai.instance_id cache 33;

-- Payloads: the functions with the rights of their owner take json and nothing else. Callers use the functions below, which
-- have the rights of the caller, accept json, jsonb and text, and convert it there.
alter function horai.put_instance rename to put_json;
alter function horai.enqueue rename to enqueue_json;
alter function horai.enqueue_many rename to enqueue_many_json;

-- Convert a payload to json. An untyped literal or parameter is text: anycompatible resolves it so, and anyelement does not.
create function horai.json_of(payload anycompatible) returns json
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    accepted oid[] := array['json'::regtype, 'jsonb'::regtype, 'text'::regtype, 'varchar'::regtype, 'bpchar'::regtype];
    told text;
begin
    if pg_typeof(payload) <> all (accepted)
        and not exists (select from pg_type where oid = pg_typeof(payload) and typbasetype = any (accepted)) then
        raise exception using errcode = 'HR422', message = format('payload: is of type %s.', pg_typeof(payload)),
            hint = 'Pass json, jsonb or JSON text; to_jsonb(value) converts other types.', column = 'payload';
    end if;
    return payload::json;
exception when invalid_text_representation or program_limit_exceeded then
    get stacked diagnostics told = pg_exception_detail;
    raise exception using errcode = 'HR422', message = format('payload: is not JSON. %s', coalesce(nullif(left(told, 200), ''), sqlerrm)),
        hint = 'Pass JSON text such as {"article": 42}; a string is JSON in double quotes.', column = 'payload';
end $$;

create function horai.put_instance(
    job text, key text, execute_time timestamptz default null, payload anycompatible default null::text,
    version bigint default null, again boolean default false
) returns horai.put_answer
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return horai.put_json(job, key, execute_time, horai.json_of(payload), version, again);
end $$;

create function horai.enqueue(job text, payload anycompatible default null::text, execute_time timestamptz default null)
returns horai.enqueue_answer
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return horai.enqueue_json(job, horai.json_of(payload), execute_time);
end $$;

-- The array is converted in one step. If that fails, converting the items one by one raises the error of the first bad one.
create function horai.enqueue_many(job text, payloads anycompatiblearray, execute_times timestamptz[] default null) returns setof bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    given json[];
begin
    if pg_typeof(payloads) in ('json[]'::regtype, 'jsonb[]'::regtype, 'text[]'::regtype) then
        begin
            given := payloads::json[];
        exception when invalid_text_representation or program_limit_exceeded then
            given := null;
        end;
    end if;
    if given is null and payloads is not null then
        given := array(select horai.json_of(item.payload) from unnest(payloads) with ordinality as item(payload, position) order by item.position);
    end if;
    return query select horai.enqueue_many_json(job, given, execute_times);
end $$;

-- Following a table. Its trigger function belongs to the caller of follow_table and has that role's rights, so that every role
-- that may write the table can do so. It runs no code of anybody else: columns are read with the output function of their
-- type, which only a superuser can define, and never with a cast or an operator of that type. This holds when the type of a
-- column, or the owner of the table, changes later. The function it calls takes text and jsonb.

-- Apply one change of a followed row: remove the entity of the old key, add or update that of the new one. Do nothing when
-- the job was deleted or is no refresh job any more, so that writes to the table go on.
create function horai.follow_entity(tenant text, job text, old_key text, new_key text, payload jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
begin
    select followed.id, followed.tenant_id, case when followed.status = 0 then followed.lane_id else 0 end, followed.payload
    into place.job_id, place.tenant_id, place.lane, place.job_payload
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
        perform horai.keep_entities(place, array[new_key], array[horai.checked_payload(follow_entity.payload::json)]);
    end if;
end $$;

-- The expression that reads a column of `holder` as jsonb. A built-in type, or a domain over one, becomes its JSON form; any
-- other type becomes a string. Null when the table has no such column.
create function horai.column_json(followed regclass, name text, holder text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    kind oid := (select atttypid from pg_attribute where attrelid = followed and attname = column_json.name and attnum > 0 and not attisdropped);
    base oid := kind;
    written text := format('format(''%%s'', %I.%I)', holder, name);
begin
    while base <> 0 loop
        kind := base;
        base := (select typbasetype from pg_type where oid = kind);
    end loop;
    if exists (select from pg_type where oid = kind and typnamespace = 'pg_catalog'::regnamespace) then
        written := format('(%s)::%s', written, format_type(kind, -1));
    end if;
    return case when kind is not null then format('case when num_nulls(%I.%I) = 0 then to_jsonb(%s) end', holder, name, written) end;
end $$;

-- The expression that reads the payload columns of `holder` as one jsonb object; null::jsonb when there are none.
create function horai.columns_json(followed regclass, names text[], holder text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(string_agg(format('jsonb_build_object(%L, %s)', item.name, horai.column_json(followed, item.name, holder)), ' || '
        order by item.position), 'null::jsonb')
    from unnest(names) with ordinality as item(name, position)
$$;

-- Create the trigger and its function, or replace those of an earlier call. The settings make the text of a value the same in
-- every session: a row that one session adds is the row that another session removes.
create function horai.write_follower(followed regclass, trigger_name text, tenant text, job text, key_column text, payload_columns text[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    home name := (select nspname from pg_class join pg_namespace on pg_namespace.oid = relnamespace where pg_class.oid = followed);
    follower text := format('%I.%I', home, trigger_name || '_' || left(md5(followed::oid || '/' || current_user), 8));
    replaced regprocedure := (select tgfoid from pg_trigger where tgrelid = followed and tgname = trigger_name and not tgisinternal);
    body text := format(
        'declare old_key text; new_key text; was jsonb; payload jsonb; '
        'begin '
        'if tg_op <> ''INSERT'' then old_key := %s #>> ''{}''; was := %s; end if; '
        'if tg_op <> ''DELETE'' then new_key := %s #>> ''{}''; payload := %s; end if; '
        'if tg_op = ''UPDATE'' and old_key is not distinct from new_key and was is not distinct from payload then return null; end if; '
        'perform horai.follow_entity(%L, %L, old_key, new_key, payload); '
        'return null; '
        'end',
        horai.column_json(followed, key_column, 'old'), horai.columns_json(followed, payload_columns, 'old'),
        horai.column_json(followed, key_column, 'new'), horai.columns_json(followed, payload_columns, 'new'), tenant, job);
begin
    if not has_schema_privilege(home, 'create') then
        raise exception using errcode = 'insufficient_privilege',
            message = format('Role %s may not create the trigger function of %s in schema %s.', current_user, followed, home),
            hint = format('Run as the owner of the schema: grant create on schema %I to %I', home, current_user);
    end if;
    execute format('create or replace function %s() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp '
        'set timezone = ''UTC'' set datestyle = ''ISO'' set intervalstyle = ''postgres'' set extra_float_digits = 1 set array_nulls = on as %L',
        follower, body);
    execute format('revoke all on function %s() from public', follower);
    execute format('create or replace trigger %I after insert or update or delete on %s for each row execute function %s()',
        trigger_name, followed, follower);
    perform horai.drop_follower(replaced) where replaced <> to_regprocedure(follower || '()');
end $$;

-- Drop a trigger function that no trigger uses any more. One that another role owns is left: that role has to drop it.
create function horai.drop_follower(follower regprocedure) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from pg_proc where oid = follower and pg_has_role(proowner, 'usage') and pronamespace <> 'horai'::regnamespace)
        and not exists (select from pg_trigger where tgfoid = follower) then
        execute format('drop function %s', follower);
    end if;
end $$;

-- Make the rows of a table entities of a job: the present ones now, later ones in the transactions that write them. Returns
-- how many entities are new. Call it again after a change of the columns. The lock of the trigger keeps writers out until
-- the commit, so that no row is missed.
create or replace function horai.follow_table(followed regclass, job text, key_column text, payload_columns text[] default '{}') returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'postgres' set extra_float_digits = 1 set array_nulls = on as $$
declare
    tenant_name text := coalesce(nullif(current_setting('horai.tenant', true), ''), 'default');
    missing text := (
        select string_agg(name, ', ') from unnest(array[key_column] || payload_columns) as name
        where horai.column_json(followed, name, 'source') is null);
    unread text := (
        select string_agg(attname, ', ') from pg_attribute
        where attrelid = followed and attname = any (array[key_column] || payload_columns) and attgenerated = 'v');
    chunk record;
    added bigint := 0;
begin
    if missing is not null then
        raise exception using errcode = 'HR422', message = format('%s has no column %s.', followed, missing),
            hint = 'Name columns of the table as they are spelled in it.', column = 'key_column';
    end if;
    if unread is not null then
        raise exception using errcode = 'HR422', message = format('Triggers cannot read the virtual generated column %s of %s.', unread, followed),
            hint = 'Make the column STORED, or name the columns that it is computed from.', column = 'key_column';
    end if;
    added := horai.add_entities(job, '{}');
    perform horai.write_follower(followed, horai.follower_name(job), tenant_name, job, key_column, payload_columns);
    for chunk in execute format(
        'select array_agg(entity.key) as keys, array_agg(entity.payload::json) as payloads from ('
        'select %s #>> ''{}'' as key, %s as payload, (row_number() over () - 1) / 10000 as part from %s source'
        ') entity where entity.key is not null group by entity.part',
        horai.column_json(followed, key_column, 'source'), horai.columns_json(followed, payload_columns, 'source'), followed)
    loop
        added := added + horai.add_entities(job, chunk.keys, chunk.payloads);
    end loop;
    return added;
end $$;

-- Stop following a table; its entities stay.
create or replace function horai.unfollow_table(followed regclass, job text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    follower regprocedure := (
        select tgfoid from pg_trigger where tgrelid = followed and tgname = horai.follower_name(job) and not tgisinternal);
begin
    execute format('drop trigger if exists %I on %s', horai.follower_name(job), followed);
    perform horai.drop_follower(follower);
end $$;

revoke execute on function
    horai.json_of, horai.put_instance, horai.enqueue, horai.enqueue_many, horai.follow_entity, horai.column_json, horai.columns_json,
    horai.write_follower, horai.drop_follower
from public;

create or replace function horai.grant_client(role_name text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema horai to %I', role_name);
    execute format('grant execute on function horai.put_instance, horai.enqueue, horai.enqueue_many, horai.cancel_instance, '
        'horai.json_of, horai.put_json, horai.enqueue_json, horai.enqueue_many_json, '
        'horai.add_entity, horai.add_entities, horai.remove_entity, horai.follow_table, horai.unfollow_table, '
        'horai.follower_name, horai.follow_entity, horai.column_json, horai.columns_json, horai.write_follower, horai.drop_follower '
        'to %I', role_name);
end $$;

-- Roles that could call the functions before can call what takes their place.
do $$
declare
    held record;
begin
    for held in
        select distinct pg_get_userbyid(acl.grantee) as client, pg_proc.proname = 'follow_table' as follows
        from pg_proc cross join aclexplode(proacl) acl
        where pronamespace = 'horai'::regnamespace and proname in ('put_json', 'follow_table') and acl.grantee not in (0, proowner)
    loop
        execute format('grant execute on function %s to %I', case when held.follows
            then 'horai.follow_entity, horai.column_json, horai.columns_json, horai.write_follower, horai.drop_follower'
            else 'horai.json_of, horai.put_instance, horai.enqueue, horai.enqueue_many' end, held.client);
    end loop;
end $$;

-- Tables that are followed already get a trigger function like any new one, which belongs to the owner of the table where
-- that role is a client. Taken over are triggers as follow_table made them, on tables that last. The others go with
-- follow_row: a trigger that names a column its table does not have has never added an entity.
do $$
declare
    known record;
    words text[];
    follower regprocedure;
begin
    for known in
        select tgname, tgrelid::regclass as followed, tgenabled, tgnargs, pg_get_userbyid(relowner) as owner, tgrelid, relowner,
            string_to_array(convert_from(decode(replace(replace(
                regexp_replace(encode(tgargs, 'hex'), '(..)', E' \\1', 'g'), ' 00', ' 01'), ' ', ''), 'hex'), getdatabaseencoding()), E'\x01') as written
        from pg_trigger join pg_class on pg_class.oid = tgrelid
        where tgfoid = 'horai.follow_row'::regproc and tgparentid = 0 and tgtype = 29 and tgname like E'horai\\_follow\\_%' and relpersistence <> 't'
    loop
        words := known.written[1:known.tgnargs];
        continue when exists (select from unnest(words[3:]) as name where horai.column_json(known.followed, name, 'source') is null);
        perform horai.write_follower(known.followed, known.tgname, words[1], words[2], words[3], words[4:]);
        if known.tgenabled <> 'O' then
            execute format('alter table %s %s trigger %I', known.followed,
                case known.tgenabled when 'D' then 'disable' when 'A' then 'enable always' else 'enable replica' end, known.tgname);
        end if;
        select tgfoid into follower from pg_trigger where tgrelid = known.tgrelid and tgname = known.tgname;
        if known.owner <> current_user and (select rolsuper from pg_roles where rolname = current_user)
            and has_function_privilege(known.relowner, 'horai.follow_entity(text, text, text, text, jsonb)', 'execute') then
            execute format('alter function %s owner to %I', follower, known.owner);
        end if;
    end loop;
exception when insufficient_privilege then
    raise exception using errcode = 'insufficient_privilege',
        message = format('The trigger %s of %s cannot be replaced: %s', known.tgname, known.followed, sqlerrm),
        hint = 'Migrate as a superuser, or drop the trigger now and call horai.follow_table again after the migration.';
end $$;
drop function horai.follow_row() cascade;

-- The public views. tenant_id is the name of the tenant in each; seed_state is the state by the names of seed 002.
create function horai.seed_state(state smallint) returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
    select case state when 0 then 'PENDING' when 2 then 'DONE' else horai.state_name(state) end
$$;

-- A view whose column changes its type has to be dropped. The rights on it are kept.
create temporary table view_right on commit drop as
select relname, acl.grantee, acl.privilege_type, acl.is_grantable
from pg_class cross join aclexplode(relacl) acl
where relnamespace = 'horai'::regnamespace and relname in ('job_instance', 'instance_event') and acl.grantee <> relowner;

drop view horai.job_instance, horai.instance_event;

-- Left joins: a query that does not read tenant_id does not read the tenants.
create view horai.job_instance as
select l.id as instance_id, l.job_id, t.name as tenant_id, l.key, l.fire_time, l.execute_time, horai.state_name(l.state) as state,
    horai.seed_state(l.state) as seed_state, l.attempt, l.retry_count, l.fence, l.node as worker_id,
    horai.idem_key(l.job_id, l.born_for, l.slot) as idem_key, l.created_at, null::timestamptz as finished_at, l.error_code, l.error_msg, l.updated_at
from horai.instance_live l left join horai.tenant t on t.id = l.tenant_id
union all
select h.id, h.job_id, t.name, h.key, h.fire_time, h.execute_time, horai.state_name(h.state),
    horai.seed_state(h.state), h.attempt, h.retry_count, h.fence, h.node,
    horai.idem_key(h.job_id, h.born_for, h.slot), h.created_at, h.finished_at, h.error_code, h.error_msg, h.finished_at
from horai.instance_history h left join horai.tenant t on t.id = h.tenant_id;

create view horai.instance_event as
select t.name as tenant_id, e.job_id, e.instance_id, e.seq, e.at, e.kind, e.data
from horai.event e left join horai.tenant t on t.id = e.tenant_id where e.instance_id is not null
union all
select t.name, h.job_id, h.id, h.events + 1, h.finished_at, 'INSTANCE_DONE',
    json_build_object('worker', h.node, 'attempt', h.attempt, 'idemKey', horai.idem_key(h.job_id, h.born_for, h.slot))
from horai.instance_history h left join horai.tenant t on t.id = h.tenant_id where h.state = 2;

do $$
declare
    held record;
begin
    for held in select * from pg_temp.view_right loop
        execute format('grant %s on horai.%I to %s%s', held.privilege_type, held.relname,
            case when held.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(held.grantee)) end,
            case when held.is_grantable then ' with grant option' else '' end);
    end loop;
end $$;

create or replace view horai.retry_entry as
select l.id as instance_id, l.due as next_fire_time, l.attempt, l.error_code as reason, t.name as tenant_id
from horai.instance_live l left join horai.tenant t on t.id = l.tenant_id where l.state = 3;

create or replace view horai.dlq_entry as
select d.instance_id, d.error_code, 'instance:' || d.instance_id as payload_ref, d.created_at, d.replay_status, t.name as tenant_id
from horai.dead_letter d left join horai.tenant t on t.id = d.tenant_id;

-- The table of seed 003, with its names and types; job_id and tenant_id tell the jobs apart. task_id is a bigint and the
-- strings have no limit, because a narrower type would fail or cut values.
create view horai.t_task as
select e.id as task_id, e.key::varchar as product_code, e.start_time, e.finish_time, e.status::integer as task_status, e.remark::varchar as remark,
    e.create_time, e.update_time, e.batch_no::text as batch_no, e.job_id, t.name as tenant_id
from horai.entity e left join horai.job j on j.id = e.job_id left join horai.tenant t on t.id = j.tenant_id;
