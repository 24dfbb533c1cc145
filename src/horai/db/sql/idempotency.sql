-- A repeated request is recognised by its key; the first one stands.

-- name: take_key
-- Zero rows: the key is taken, or ($5 keys, $6 bytes) the tenant has as many as it may. A concurrent first request is waited
-- for, no longer than lock_timeout, and read in the next statement.
insert into horai.idempotency_key (tenant_id, scope, key, request_hash)
select $1, $2, $3, $4
where not exists (select from horai.idempotency_load where tenant_id = $1 and (keys >= $5 or bytes >= $6))
on conflict (tenant_id, scope, key) do nothing
returning key;

-- name: bind_key
update horai.idempotency_key set job_id = $4, instance_id = $5 where tenant_id = $1 and scope = $2 and key = $3;

-- name: keep_answer
update horai.idempotency_key set status = $4, headers = $5, body = $6, size = $7 where tenant_id = $1 and scope = $2 and key = $3;

-- name: key_holder
select request_hash, job_id, instance_id, status, headers, body from horai.idempotency_key
where tenant_id = $1 and scope = $2 and key = $3;

-- name: forget_keys
-- Deletes up to $2 keys that are older than $1, the oldest first, and returns their number.
with old as materialized (
    select tenant_id, scope, key from horai.idempotency_key where created_at < clock_timestamp() - $1::interval
    order by created_at limit $2 for update skip locked
), gone as (
    delete from horai.idempotency_key own using old
    where own.tenant_id = old.tenant_id and own.scope = old.scope and own.key = old.key returning own.key
)
select count(*) from gone;

-- name: count_keys
-- Writes how many keys each tenant has, and the bytes of their answers. A tenant without keys keeps no row.
with counted as materialized (
    select tenant_id, count(*) as keys, coalesce(sum(size), 0)::bigint as bytes from horai.idempotency_key group by tenant_id
), idle as (
    delete from horai.idempotency_load load where not exists (select from counted where counted.tenant_id = load.tenant_id)
)
insert into horai.idempotency_load (tenant_id, keys, bytes) select tenant_id, keys, bytes from counted
on conflict (tenant_id) do update set keys = excluded.keys, bytes = excluded.bytes;
