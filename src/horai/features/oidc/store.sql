-- Sign-ins in progress, and the roles of groups.

-- name: delete_ended_sign_ins
-- tenant: platform
delete from horai.access_sign_in where expires_at < clock_timestamp();

-- name: insert_sign_in
-- tenant: platform
insert into horai.access_sign_in (hash, browser, return_to, expires_at)
values ($1, $2, $3, clock_timestamp() + $4::interval);

-- name: take_sign_in
-- tenant: platform
-- Returns the page to return to, once, and only to the browser that began the sign-in.
delete from horai.access_sign_in where hash = $1 and browser = $2 and expires_at > clock_timestamp() returning return_to;

-- name: insert_group_mapping
-- tenant: $2
-- No row: the group has a role there already.
insert into horai.access_group as mapping (name, tenant_id, role, created_by) values ($1, $2, $3, $4)
on conflict do nothing
returning id, name, role, created_at, created_by,
    (select tenant.name from horai.tenant where tenant.id = mapping.tenant_id) as tenant, pg_notify('horai_wake', 'k');

-- name: find_group_mapping
-- tenant: platform
select id, name, role, created_at, created_by,
    (select tenant.name from horai.tenant where tenant.id = mapping.tenant_id) as tenant
from horai.access_group mapping where name = $1 and tenant_id is not distinct from $2;

-- name: list_group_mappings
-- tenant: platform
-- One page, newest first.
select id, name, role, created_at, created_by,
    (select tenant.name from horai.tenant where tenant.id = mapping.tenant_id) as tenant
from horai.access_group mapping where id < $1 order by id desc limit $2;

-- name: delete_group_mapping
-- tenant: platform
delete from horai.access_group mapping where id = $1
returning id, name, role, created_at, created_by, tenant_id,
    (select tenant.name from horai.tenant where tenant.id = mapping.tenant_id) as tenant, pg_notify('horai_wake', 'k');
