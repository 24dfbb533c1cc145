-- Idempotency keys of compositions.

-- name: take_composition_key
-- tenant: $1
-- Waits up to lock_timeout for another transaction with the same key.
select is_first, first_instance, is_same from horai.take_composition_key($1, $2, $3, $4::json);

-- name: bind_composition_key
-- tenant: $1
select horai.bind_composition_key($1, $2, $3);
