-- Data keys, one per tenant and month, wrapped by a key-encryption key that no database holds.

-- name: current_data_key
-- tenant: $1
-- Returns the tenant's key of this month. Locked until commit, so that the key is not erased while a value is sealed with it.
select id, wrapped, kek from horai.data_key
where tenant_id = $1 and month = date_trunc('month', clock_timestamp() at time zone 'utc')::date for key share;

-- name: newest_data_key
-- tenant: $1
select id, wrapped, kek from horai.data_key where tenant_id = $1 order by month desc limit 1;

-- name: oldest_data_key
-- tenant: $1
-- Returns the tenant's first key, for digests that must stay equal from month to month. Locked as above.
select id, wrapped, kek from horai.data_key where tenant_id = $1 order by month limit 1 for key share;

-- name: insert_data_key
-- tenant: $1
-- Of two transactions that make the key of a month, the second waits for the first and inserts nothing.
insert into horai.data_key (tenant_id, id, month, wrapped, kek)
values ($1, $2, date_trunc('month', clock_timestamp() at time zone 'utc')::date, $3, $4)
on conflict (tenant_id, month) do nothing;

-- name: data_keys
-- tenant: $1
-- Returns the keys with these tenants and ids.
select key.tenant_id, key.id, key.wrapped, key.kek
from unnest($1::integer[], $2::text[]) as wanted(tenant_id, id)
join horai.data_key key on key.tenant_id = wanted.tenant_id and key.id = wanted.id;

-- name: data_keys_of_tenant
-- tenant: $1
select tenant_id, id, wrapped, kek from horai.data_key where tenant_id = $1;

-- name: count_data_keys
-- tenant: platform
-- Counts the keys of all tenants by the key-encryption key that wraps them.
select kek, count(*) as keys, min(month) as since from horai.data_key group by kek order by min(month), kek;

-- name: data_keys_to_rewrap
-- tenant: platform
-- Returns a page of keys of all tenants that another key-encryption key than $1 wraps, and locks them.
select tenant_id, id, wrapped, kek from horai.data_key
where kek <> $1 and kek = any ($2::text[]) order by tenant_id, id limit $3 for update;

-- name: rewrap_data_keys
-- tenant: platform
update horai.data_key key set wrapped = fresh.wrapped, kek = $4, wrapped_at = clock_timestamp()
from unnest($1::integer[], $2::text[], $3::bytea[]) as fresh(tenant_id, id, wrapped)
where key.tenant_id = fresh.tenant_id and key.id = fresh.id;

-- name: erase_data_keys
-- tenant: $1
-- Deletes all keys of a tenant, and makes every node forget them. Transactions that are sealing with one of them end first.
delete from horai.data_key where tenant_id = $1 returning id, pg_notify('horai_wake', 'd');
