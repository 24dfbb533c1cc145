-- Keys, sessions and the state of access. `horai_wake` with `k` makes every node forget the keys that it remembers.

-- name: is_keyed
-- tenant: platform
-- Returns whether a key was ever created: from then on, the server serves no request without one.
select exists (select from horai.access_state);

-- name: mark_keyed
-- tenant: platform
-- Two first keys at the same time both count: the second waits for the first to commit and changes nothing.
insert into horai.access_state default values on conflict do nothing returning true;

-- name: key_in_force
-- tenant: platform
-- Returns the key $1 if it is in force, with its remaining seconds.
select key.id, key.name, key.role, key.hash, key.networks::text[] as networks, key.tenant_id, tenant.name as tenant,
    extract(epoch from key.expires_at - clock_timestamp())::float8 as seconds_left
from horai.access_key key left join horai.tenant on tenant.id = key.tenant_id
where key.id = $1 and key.revoked_at is null and (key.expires_at is null or key.expires_at > clock_timestamp());

-- name: key_of_session
-- tenant: platform
-- Returns the key in force of the session with the hash $1, with the remaining seconds of the one that ends first.
select key.id, key.name, key.role, key.hash, key.networks::text[] as networks, key.tenant_id, tenant.name as tenant,
    extract(epoch from least(key.expires_at, session.expires_at) - clock_timestamp())::float8 as seconds_left
from horai.access_session session
join horai.access_key key on key.id = session.key_id
left join horai.tenant on tenant.id = key.tenant_id
where session.hash = $1 and session.expires_at > clock_timestamp()
    and key.revoked_at is null and (key.expires_at is null or key.expires_at > clock_timestamp());

-- name: note_key_use
-- tenant: platform
-- At most once a minute for each key.
update horai.access_key set last_used_at = clock_timestamp()
where id = $1 and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 min');

-- name: insert_key
-- tenant: $2
-- $2: null for a key of the platform.
insert into horai.access_key as key (id, tenant_id, role, name, hash, networks, created_by, expires_at)
values ($1, $2, $3, $4, $5, $6::text[]::cidr[], $7, $8)
returning number, id, name, role, networks::text[] as networks, created_at, created_by, expires_at, revoked_at, last_used_at,
    (select tenant.name from horai.tenant where tenant.id = key.tenant_id) as tenant, pg_notify('horai_wake', 'k');

-- name: list_keys
-- tenant: platform
-- Returns the keys of the tenant $1, newest first; with $2, every key.
select number, id, name, role, networks::text[] as networks, created_at, created_by, expires_at, revoked_at, last_used_at,
    (select tenant.name from horai.tenant where tenant.id = key.tenant_id) as tenant from horai.access_key key
where (tenant_id = $1 or $2) and number < $3 order by number desc limit $4;

-- name: revoke_key
-- tenant: platform
-- $2 and $3 as $1 and $2 of list_keys. A second revocation keeps the time of the first.
update horai.access_key key set revoked_at = coalesce(revoked_at, clock_timestamp())
where id = $1 and (tenant_id = $2 or $3)
returning number, id, name, role, networks::text[] as networks, created_at, created_by, expires_at, revoked_at, last_used_at,
    (select tenant.name from horai.tenant where tenant.id = key.tenant_id) as tenant, pg_notify('horai_wake', 'k');

-- name: insert_session
-- tenant: platform
insert into horai.access_session (hash, key_id, expires_at) values ($1, $2, clock_timestamp() + $3::interval)
returning expires_at;

-- name: delete_session
-- tenant: platform
delete from horai.access_session where hash = $1 returning pg_notify('horai_wake', 'k');

-- name: delete_ended_sessions
-- tenant: platform
delete from horai.access_session where expires_at < clock_timestamp();
