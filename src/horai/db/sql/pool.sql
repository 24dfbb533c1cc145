-- Settings of a pooled connection.

-- name: set_plans
-- Sets how later statements of the session are planned: $1 plan_cache_mode, $2 enable_seqscan.
select set_config('plan_cache_mode', $1, false), set_config('enable_seqscan', $2, false);

-- name: limit_lock_wait
-- Sets lock_timeout for the rest of the transaction: a statement that waits for a lock fails soon, and does not block the
-- transaction that holds it.
select set_config('lock_timeout', $1, true);

