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

-- name: enqueue_many_within
-- tenant: by session
select instance_id from horai.enqueue_many(cast($1 as text), cast($2 as text[])::json[], cast($3 as text[])::timestamptz[])
    with ordinality as made(instance_id, position)
order by position;

-- name: cancel_within
-- tenant: by session
select instance_id, was from horai.cancel_instance(cast($1 as text), cast($2 as text));

-- name: add_entities_within
-- tenant: by session
select horai.add_entities(cast($1 as text), cast($2 as text[]), cast($3 as text[])::json[]) as added;

-- name: remove_entity_within
-- tenant: by session
select horai.remove_entity(cast($1 as text), cast($2 as text)) as was_one;

-- name: now_within
-- tenant: none
select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now_micros;
