-- A repeated request is recognised by its key; the first one stands.

-- name: take_key
-- Zero rows: the key is taken. A concurrent first request is waited for, and read in the next statement.
insert into horai.idempotency_key (tenant_id, scope, key, request_hash) values ($1, $2, $3, $4)
on conflict (tenant_id, scope, key) do nothing
returning key;

-- name: bind_key
update horai.idempotency_key set job_id = $4, instance_id = $5 where tenant_id = $1 and scope = $2 and key = $3;

-- name: key_holder
select request_hash, job_id, instance_id from horai.idempotency_key where tenant_id = $1 and scope = $2 and key = $3;

-- name: forget_keys
delete from horai.idempotency_key where created_at < clock_timestamp() - $1::interval;
