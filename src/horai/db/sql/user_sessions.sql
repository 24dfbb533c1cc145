-- Sessions of users, who sign in with an identity provider. `horai_wake` with `k` makes every node forget what it remembers.

-- name: grants_of_groups
-- tenant: platform
-- Returns what the groups $1 give: a row for each mapping, so a tenant may occur twice.
select mapping.tenant_id, tenant.name as tenant, mapping.role
from horai.access_group mapping left join horai.tenant on tenant.id = mapping.tenant_id
where mapping.name = any($1::text[]);

-- name: user_of_session
-- tenant: platform
-- Returns the user of the session with the hash $1, with its remaining seconds: a row for each mapping of a group of the user.
select session.subject, session.user_name, session.chosen_tenant_id, mapping.tenant_id, tenant.name as tenant, mapping.role,
    extract(epoch from session.expires_at - clock_timestamp())::float8 as seconds_left
from horai.access_session session
join horai.access_group mapping on mapping.name = any(session.groups)
left join horai.tenant on tenant.id = mapping.tenant_id
where session.hash = $1 and session.key_id is null and session.expires_at > clock_timestamp();

-- name: insert_user_session
-- tenant: platform
insert into horai.access_session (hash, subject, user_name, groups, chosen_tenant_id, expires_at)
values ($1, $2, $3, $4, $5, clock_timestamp() + $6::interval);

-- name: move_user_session
-- tenant: platform
-- Gives the session $1 the hash $2 and the tenant $3. No node remembers the new hash, so no node serves the old tenant for it.
update horai.access_session set hash = $2, chosen_tenant_id = $3
where hash = $1 and key_id is null and expires_at > clock_timestamp()
returning extract(epoch from expires_at - clock_timestamp())::float8 as seconds_left, pg_notify('horai_wake', 'k');
