-- The columns of an instance, in one place. {{carried}} in a statement stands for the list, {{live.carried}} for the list with
-- the prefix `live.`.

-- columns: carried
-- A final instance takes these along unchanged from instance_live to instance_history.
id, job_id, tenant_id, lane, key, fire_time, execute_time, born_for, slot, attempt, fence, node, version, supersedes, replay_of,
payload, created_at, claimed_at, concurrency_key, own_lane, expires_at

-- columns: read
-- Both tables have these, and reads return them.
id, job_id, key, state, fire_time, execute_time, born_for, slot, attempt, retry_count, fence, node, version, supersedes, replay_of,
error_code, error_msg, created_at, claimed_at, concurrency_key, expires_at
