-- Statements that run on the caller's connection, inside the caller's transaction. The caller commits or rolls back; Horai
-- never does. Parameters are text only, and results are text and integers only, so that any driver and codec works.
-- The text must suit all placeholder styles: no per cent sign and no word after a single colon, not even in a comment.

-- name: set_savepoint
-- tenant: none
savepoint horai_call;

-- name: release_savepoint
-- tenant: none
release savepoint horai_call;

-- name: return_to_savepoint
-- tenant: none
rollback to savepoint horai_call;

-- name: put_within
-- tenant: by session
select decision, instance_id, state, (extract(epoch from execute_time) * 1000000)::bigint as execute_micros
from horai.put_instance(cast($1 as text), cast($2 as text), cast($3 as text)::timestamptz, cast($4 as text)::json,
    cast($5 as text)::bigint, cast($6 as text)::boolean);

-- name: enqueue_within
-- tenant: by session
select instance_id, (extract(epoch from execute_time) * 1000000)::bigint as execute_micros
from horai.enqueue(cast($1 as text), cast($2 as text)::json, cast($3 as text)::timestamptz);

-- name: enqueue_calls_within
-- tenant: by session
select made.decision, made.instance_id
from horai.enqueue_calls_json(cast($1 as text), cast($2 as text[])::json[], cast($3 as text)::integer, cast($4 as text)::interval,
    cast($5 as text)::timestamptz, array(
        select decode(given.digest, 'hex') from unnest(cast($6 as text[])) with ordinality as given(digest, place) order by given.place
    )) with ordinality as made(decision, instance_id, place)
order by made.place;

-- name: enqueue_many_within
-- tenant: by session
select instance_id from horai.enqueue_many(cast($1 as text), cast($2 as text[])::json[], cast($3 as text[])::timestamptz[])
    with ordinality as made(instance_id, position)
order by position;

-- name: put_with_settings_within
-- tenant: by session
-- The same as put_within with the settings of the call. A function in FROM is called, even if no column of it is read.
select made.decision, made.instance_id, made.state, (extract(epoch from made.execute_time) * 1000000)::bigint as execute_micros
from horai.put_instance(cast($1 as text), cast($2 as text), cast($3 as text)::timestamptz, cast($4 as text)::json,
    cast($5 as text)::bigint, cast($6 as text)::boolean) made
cross join lateral (
    select case when made.decision = 'IGNORED' then array[]::bigint[] else array[made.instance_id] end as ids,
        case when made.decision = 'IGNORED' then array[]::text[] else cast($11 as text[]) end as keys
) own
cross join lateral horai.set_call_options(cast($1 as text), own.ids, cast($7 as text), cast($8 as text), cast($9 as text)::interval, cast($10 as text)::timestamptz, own.keys, made.decision <> 'UPDATED') given;

-- name: put_keeping_within
-- tenant: by session
-- The same as put_within, and the finished steps of the instance stay finished.
select decision, instance_id, state, (extract(epoch from execute_time) * 1000000)::bigint as execute_micros
from horai.put_keeping_steps(cast($1 as text), cast($2 as text), cast($3 as text)::timestamptz, cast($4 as text)::json,
    cast($5 as text)::bigint, cast($6 as text)::boolean);

-- name: put_keeping_with_settings_within
-- tenant: by session
select made.decision, made.instance_id, made.state, (extract(epoch from made.execute_time) * 1000000)::bigint as execute_micros
from horai.put_keeping_steps(cast($1 as text), cast($2 as text), cast($3 as text)::timestamptz, cast($4 as text)::json,
    cast($5 as text)::bigint, cast($6 as text)::boolean) made
cross join lateral (
    select case when made.decision = 'IGNORED' then array[]::bigint[] else array[made.instance_id] end as ids,
        case when made.decision = 'IGNORED' then array[]::text[] else cast($11 as text[]) end as keys
) own
cross join lateral horai.set_call_options(cast($1 as text), own.ids, cast($7 as text), cast($8 as text), cast($9 as text)::interval, cast($10 as text)::timestamptz, own.keys, made.decision <> 'UPDATED') given;

-- name: enqueue_with_settings_within
-- tenant: by session
select made.instance_id, (extract(epoch from made.execute_time) * 1000000)::bigint as execute_micros
from horai.enqueue(cast($1 as text), cast($2 as text)::json, cast($3 as text)::timestamptz) made
cross join lateral horai.set_call_options(cast($1 as text), array[made.instance_id], cast($4 as text), cast($5 as text), cast($6 as text)::interval, cast($7 as text)::timestamptz, cast($8 as text[]), true) given;

-- name: enqueue_many_with_settings_within
-- tenant: by session
with made as materialized (
    select instance_id, position
    from horai.enqueue_many(cast($1 as text), cast($2 as text[])::json[], cast($3 as text[])::timestamptz[])
        with ordinality as new(instance_id, position)
)
select made.instance_id from made cross join horai.set_call_options(cast($1 as text),
    array(select given.instance_id from made given order by given.position), cast($4 as text), cast($5 as text), cast($6 as text)::interval, cast($7 as text)::timestamptz, cast($8 as text[]), true) given
order by made.position;

-- name: enqueue_calls_with_settings_within
-- tenant: by session
-- Without concurrency keys, $11 is null, and so are the arrays of keys.
with made as materialized (
    select new.decision, new.instance_id, new.place, given.key
    from horai.enqueue_calls_json(cast($1 as text), cast($2 as text[])::json[], cast($3 as text)::integer, cast($4 as text)::interval,
        cast($5 as text)::timestamptz, array(
            select decode(given.digest, 'hex') from unnest(cast($6 as text[])) with ordinality as given(digest, place) order by given.place
        )) with ordinality as new(decision, instance_id, place)
    left join unnest(cast($11 as text[])) with ordinality as given(key, place) on given.place = new.place
)
select made.decision, made.instance_id from made
cross join horai.set_call_options(cast($1 as text),
    array(select added.instance_id from made added where added.decision = 'INSERTED' order by added.place), cast($7 as text), cast($8 as text), cast($9 as text)::interval, cast($10 as text)::timestamptz,
    case when cast($11 as text[]) is not null then array(select added.key from made added where added.decision = 'INSERTED' order by added.place) end,
    true) keyed
cross join horai.set_call_options(cast($1 as text),
    array(select moved.instance_id from made moved where moved.decision = 'UPDATED' order by moved.place), cast($7 as text), cast($8 as text), cast($9 as text)::interval, cast($10 as text)::timestamptz,
    case when cast($11 as text[]) is not null then array(select moved.key from made moved where moved.decision = 'UPDATED' order by moved.place) end,
    false) changed
order by made.place;

-- name: cancel_within
-- tenant: by session
select instance_id, was from horai.cancel_instance(cast($1 as text), cast($2 as text));

-- name: add_entities_within
-- tenant: by session
select horai.add_entities(cast($1 as text), cast($2 as text[]), cast($3 as text[])::json[]) as added;

-- name: remove_entity_within
-- tenant: by session
select horai.remove_entity(cast($1 as text), cast($2 as text)) as was_one;

-- name: record_step_within
-- tenant: by session
select horai.record_step(cast($1 as text)::bigint, cast($2 as text)::integer, cast($3 as text)::bigint, cast($4 as text)::bigint,
    cast($5 as text), cast($6 as text)::integer, cast($7 as text)::json) as is_recorded;

-- name: signal_within
-- tenant: by session
select horai.signal(cast($1 as text), cast($2 as text), cast($3 as text), cast($4 as text)::json, cast($5 as text)) as signal_id;

-- name: update_asset_within
-- tenant: by session
select horai.update_asset(cast($1 as text), cast($2 as text)::json, cast($3 as text)::timestamptz, cast($4 as text)::timestamptz,
    cast($5 as text)) as update_id;

-- name: start_composition_within
-- tenant: by session
select instance_id, is_new from horai.start_composition(cast($1 as text), cast($2 as text)::json, cast($3 as text)::timestamptz, cast($4 as text));

-- name: now_within
-- tenant: none
select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now_micros;
