-- What a pooled connection is told.

-- name: set_plans
-- How the statements that follow are planned, for the rest of the session: $1 plan_cache_mode, $2 enable_seqscan.
select set_config('plan_cache_mode', $1, false), set_config('enable_seqscan', $2, false);

-- name: limit_lock_wait
-- For the rest of the transaction: a statement that meets a lock gives way soon, and does not hold up the holder.
select set_config('lock_timeout', $1, true);

