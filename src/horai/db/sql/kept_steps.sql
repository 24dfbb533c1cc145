-- Puts that keep the records of durable functions.

-- name: keep_steps
-- tenant: none
-- Until the end of the transaction, or with 'off': a put that moves an instance leaves its records as they are.
select set_config('horai.keep_steps', $1, true);

-- name: carry_steps
-- tenant: by instance
-- Gives the records of instances that this transaction has superseded ($1) to their successors ($2).
select horai.carry_steps($1::bigint[], $2::bigint[]);
