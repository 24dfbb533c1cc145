-- Idempotency keys. A repeated request is recognised by its key and gets the result of the first request.

-- name: take_key
-- tenant: $1
-- Returns no row if the key is taken, or if the tenant has reached its limit of $5 keys or $6 bytes. Waits up to lock_timeout
-- for a concurrent first request, which the next statement then reads.
insert into horai.idempotency_key (tenant_id, scope, key, request_hash)
select $1, $2, $3, $4
where not exists (select from horai.idempotency_load where tenant_id = $1 and (keys >= $5 or bytes >= $6))
on conflict (tenant_id, scope, key) do nothing
returning key;

-- name: bind_key
-- tenant: $1
update horai.idempotency_key set job_id = $4, instance_id = $5 where tenant_id = $1 and scope = $2 and key = $3;

-- name: keep_answer
-- tenant: $1
update horai.idempotency_key set status = $4, headers = $5, body = $6, size = $7 where tenant_id = $1 and scope = $2 and key = $3;

-- name: key_holder
-- tenant: $1
select request_hash, job_id, instance_id, status, headers, body from horai.idempotency_key
where tenant_id = $1 and scope = $2 and key = $3;

-- name: forget_keys
-- tenant: platform
-- Deletes up to $2 keys that are older than $1, oldest first, and returns their number.
with old as materialized (
    select tenant_id, scope, key from horai.idempotency_key where created_at < clock_timestamp() - $1::interval
    order by created_at limit $2 for update skip locked
), gone as (
    delete from horai.idempotency_key own using old
    where own.tenant_id = old.tenant_id and own.scope = old.scope and own.key = old.key returning own.key
)
select count(*) from gone;

-- name: count_keys
-- tenant: platform
-- Writes the number of keys of each tenant, and the bytes of their answers. A tenant without keys has no row.
with counted as materialized (
    select tenant_id, count(*) as keys, coalesce(sum(size), 0)::bigint as bytes from horai.idempotency_key group by tenant_id
), idle as (
    delete from horai.idempotency_load load where not exists (select from counted where counted.tenant_id = load.tenant_id)
)
insert into horai.idempotency_load (tenant_id, keys, bytes) select tenant_id, keys, bytes from counted
on conflict (tenant_id) do update set keys = excluded.keys, bytes = excluded.bytes;
