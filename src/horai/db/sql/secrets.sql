-- Named secrets of a tenant, whose values are envelopes.

-- name: lock_secret_names
-- tenant: none
-- Locked until commit: a tenant's secrets are counted and added by one transaction at a time. An advisory lock: requests may not
-- update the tenant.
select pg_advisory_xact_lock(1215263332, $1);

-- name: count_secrets
-- tenant: $1
select count(*) from horai.secret where tenant_id = $1;

-- name: insert_secret
-- tenant: $1
insert into horai.secret (tenant_id, name, value) values ($1, $2, $3) on conflict (tenant_id, name) do nothing
returning name, version, created_at, updated_at;

-- name: replace_secret
-- tenant: $1
update horai.secret set value = $3, version = version + 1, updated_at = clock_timestamp() where tenant_id = $1 and name = $2
returning name, version, created_at, updated_at;

-- name: list_secrets
-- tenant: $1
-- Returns a page by name, without the values.
select name, version, created_at, updated_at from horai.secret where tenant_id = $1 and name > $2 order by name limit $3;

-- name: lock_secret
-- tenant: $1
select name from horai.secret where tenant_id = $1 and name = $2 for update;

-- name: share_secrets
-- tenant: $1
-- Returns those of the names $2 that exist. Locked until commit, so that none is deleted while a job begins to use it.
select name from horai.secret where tenant_id = $1 and name = any ($2::text[]) order by name for key share;

-- name: user_of_secret
-- tenant: $1
-- Returns the name of a job that sends the secret. The text comparison lets PostgreSQL use the index job_named_secrets.
select job.name from horai.job
where tenant_id = $1 and deleted_at is null and definition #>> '{target,headers}' like '%"secret":%'
    and exists (select from json_each(definition #> '{target,headers}') header where header.value ->> 'secret' = $2)
order by job.id limit 1;

-- name: delete_secret
-- tenant: $1
delete from horai.secret where tenant_id = $1 and name = $2;

-- name: secret_values
-- tenant: $1
-- Returns the envelopes of secrets by tenant and name, for the calls that send them.
select secret.tenant_id, secret.name, secret.version, secret.value
from unnest($1::integer[], $2::text[]) as wanted(tenant_id, name)
join horai.secret on secret.tenant_id = wanted.tenant_id and secret.name = wanted.name;
