-- What a pooled connection is told.

-- name: set_plans
-- How the statements that follow are planned, for the rest of the session: $1 plan_cache_mode, $2 enable_seqscan.
select set_config('plan_cache_mode', $1, false), set_config('enable_seqscan', $2, false);
