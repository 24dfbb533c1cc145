-- Settings of a pooled connection.

-- name: set_session
-- tenant: none
-- Sets how later statements of the session are planned ($1 plan_cache_mode, $2 enable_seqscan), and the tenant that it serves
-- ($3, empty for the platform). A session of a tenant has the rights of horai_api, unless the database has a single role.
select set_config('plan_cache_mode', $1, false), set_config('enable_seqscan', $2, false), set_config('horai.tenant_id', $3, false),
    set_config('role', case when $3 <> '' and (select relrowsecurity from pg_class where oid = 'horai.job'::regclass)
        then 'horai_api' else 'none' end, false);

-- name: forbid_writes
-- tenant: none
set default_transaction_read_only = on;

-- name: permit_writes
-- tenant: none
-- A reset, and not `off`: an operator who makes the server read-only must be obeyed by every session.
reset default_transaction_read_only;

-- name: limit_lock_wait
-- tenant: none
-- Sets lock_timeout for the rest of the transaction: a statement that waits for a lock fails soon, and does not block the
-- transaction that holds it.
select set_config('lock_timeout', $1, true);

