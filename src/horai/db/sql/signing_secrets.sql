-- The secrets that sign a tenant's calls. One is in force until `retired_at`.

-- name: list_signing_secrets
-- tenant: $1
-- Returns a tenant's secrets in force, newest first.
select id, secret, created_at, retired_at from horai.signing_secret
where tenant_id = $1 and (retired_at is null or retired_at > clock_timestamp()) order by id desc;

-- name: lock_signing_secrets
-- tenant: none
-- Locked until commit: two rotations of a tenant run one after the other. An advisory lock: requests may not update the tenant.
select pg_advisory_xact_lock(1215263331, $1);

-- name: forget_signing_secrets
-- tenant: $1
-- Deletes the secrets that are no longer in force.
delete from horai.signing_secret where tenant_id = $1 and retired_at <= clock_timestamp();

-- name: retire_signing_secrets
-- tenant: $1
-- Retires all secrets after $2; a secret that ends earlier keeps its end.
update horai.signing_secret set retired_at = least(retired_at, clock_timestamp() + $2::interval) where tenant_id = $1;

-- name: insert_signing_secret
-- tenant: $1
-- $2: the envelope of a new secret; null for one that the database makes.
insert into horai.signing_secret (tenant_id, secret) values ($1, coalesce($2, horai.new_signing_secret()));

-- name: replace_signing_secret
-- tenant: $1
-- For a tenant that this transaction creates: the secret that its trigger made was never used.
update horai.signing_secret set secret = $2 where tenant_id = $1;

-- name: plain_signing_secrets
-- tenant: platform
-- Returns secrets that are stored as they are, and locks them. Rows of other transactions are left for the next round.
select id, tenant_id, secret from horai.signing_secret where starts_with(secret, 'whsec_') order by id limit $1 for update skip locked;

-- name: store_sealed_secret
-- tenant: platform
update horai.signing_secret set secret = $2 where id = $1;

-- name: add_missing_secrets
-- tenant: platform
-- Adds a secret for each tenant without one that stays in force, also if the operator deleted the rows.
insert into horai.signing_secret (tenant_id, secret)
select tenant.id, horai.new_signing_secret() from horai.tenant
where tenant.deleting_at is null
    and not exists (select from horai.signing_secret secret where secret.tenant_id = tenant.id and secret.retired_at is null);

-- name: callback_settings
-- tenant: platform
-- Returns the secrets in force of every tenant, newest first, with its callback networks and whether the server has keys.
select tenant.id as tenant_id, tenant.name as tenant, array_agg(secret.secret order by secret.id desc) as secrets,
    quota.callback_networks::text[] as networks, (select horai.is_keyed()) as is_keyed
from horai.signing_secret secret join horai.tenant on tenant.id = secret.tenant_id
left join horai.tenant_quota quota on quota.tenant_id = tenant.id
where secret.retired_at is null or secret.retired_at > clock_timestamp() group by tenant.id, quota.callback_networks;

-- name: reach_of
-- tenant: platform
select quota.callback_networks::text[] as networks, horai.is_keyed() as is_keyed
from horai.tenant left join horai.tenant_quota quota on quota.tenant_id = tenant.id where tenant.id = $1;
