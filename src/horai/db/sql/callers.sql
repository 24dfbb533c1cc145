-- What we do inside a transaction that is the caller's: they commit it or roll it back, we never do.

-- name: caller_transaction
-- told: which wakes this transaction has said; the setting ends with it. plain: comes as text unless the caller decodes json.
select current_setting('transaction_isolation') as isolation, clock_timestamp() as now,
    coalesce(current_setting('horai.told', true), '') as told, '[]'::json as plain;

-- name: set_savepoint
savepoint horai;

-- name: release_savepoint
release savepoint horai;

-- name: return_to_savepoint
rollback to savepoint horai;

-- name: notify_at_commit
-- Delivered by the caller's commit, never without it.
select pg_notify('horai_wake', $1), set_config('horai.told', $2, true);
