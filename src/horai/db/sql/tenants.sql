-- Tenants. A transaction that changes one locks its row and calls `horai.hold_tenant`; a new job or queue calls
-- `horai.share_tenant` (migration 0031). Statements of this file run with the rights of the platform, but for find_tenant.

-- name: insert_tenant
-- tenant: platform
-- The trigger on the table adds its signing secret. No row: the name is taken.
insert into horai.tenant (name) values ($1) on conflict do nothing
returning id, name, created_at, weight, version, paused_at, deleting_at;

-- name: list_tenants
-- tenant: platform
-- One page, by name.
select id, name, created_at, weight, version, paused_at, deleting_at from horai.tenant where name > $1 order by name limit $2;

-- name: find_tenant
-- tenant: by tenant
select id, name, created_at, weight, version, paused_at, deleting_at from horai.tenant where name = $1;

-- name: find_tenant_by_id
-- tenant: platform
select id, name, created_at, weight, version, paused_at, deleting_at from horai.tenant where id = $1;

-- name: lock_tenant
-- tenant: platform
select id, name, created_at, weight, version, paused_at, deleting_at from horai.tenant where name = $1 for no key update;

-- name: hold_tenant
-- tenant: platform
-- A later statement: only that sees the jobs and queues of the transactions for which this one waits.
select horai.hold_tenant($1);

-- name: write_tenant
-- tenant: platform
-- $3: whether the platform holds its dispatch. A second pause keeps the time of the first.
update horai.tenant set weight = $2, paused_at = case when $3::boolean then coalesce(paused_at, clock_timestamp()) end, version = version + 1
where id = $1 returning id, name, created_at, weight, version, paused_at, deleting_at;

-- name: read_keep_times
-- tenant: $1
select keep_history, keep_dead_letters from horai.retention where tenant_id = $1 and job_id = 0;

-- name: write_keep_times
-- tenant: platform
select horai.set_retention($1, 0, $2, $3);

-- name: shut_queues
-- tenant: $1
-- Waits for claims under way in the queues of the tenant; no later claim begins before the commit. The row of a queue is locked before
-- its door, as by a change of the queue; no lock on a key, because a new job refers to the queue and then waits for the tenant.
select horai.shut_queue(queue.id) from (select id from horai.queue where tenant_id = $1 order by id for no key update) queue;

-- name: hold_queues
-- tenant: $1
-- Holds or releases the queues of the tenant, as its pause and the holds on its dispatch say now.
update horai.queue set held = not held where tenant_id = $1 and held <> horai.is_dispatch_held(tenant_id) returning id;

-- name: mark_deleting
-- tenant: platform
update horai.tenant set deleting_at = clock_timestamp(), version = version + 1 where id = $1
returning id, name, created_at, weight, version, paused_at, deleting_at;

-- name: revoke_access_to_tenant
-- tenant: $1
-- Revokes its keys and deletes the roles of groups in it. `k` makes every node forget the callers that it remembers.
with revoked as (
    update horai.access_key set revoked_at = clock_timestamp() where tenant_id = $1 and revoked_at is null
), deleted as (
    delete from horai.access_group where tenant_id = $1
)
select pg_notify('horai_wake', 'k');

-- name: delete_jobs_of_tenant
-- tenant: $1
-- No job fires or takes instances any more: a job that another transaction has locked is metered, and the quotas of a tenant that is
-- being deleted refuse everything.
update horai.job set deleted_at = coalesce(deleted_at, clock_timestamp()), metered = true, relane = false, version = version + 1
where tenant_id = $1;

-- name: tenants_to_erase
-- tenant: platform
select id, name from horai.tenant where deleting_at is not null order by deleting_at;

-- name: end_running_of_tenant
-- tenant: $1
-- Running calls of a tenant that is being deleted: their rows go at once, so that no outcome of them counts.
with picked as materialized (
    select id from horai.instance_live where tenant_id = $1 and state = 1 limit $2 for update skip locked
)
delete from horai.instance_live live using picked where live.id = any (array[picked.id]) returning live.id, live.fence;

-- name: erase_some
-- tenant: platform
select horai.erase_some($1, $2);

-- name: end_sessions_in_tenant
-- tenant: platform
-- Sessions of users who acted in a tenant that is being deleted. The roles of their groups in it are gone.
delete from horai.access_session
where chosen_tenant_id = $1 and exists (select from horai.tenant where id = $1 and deleting_at is not null);

-- name: erase_tenant
-- tenant: platform
-- Fails while a row refers to the tenant. Every node forgets its data keys.
delete from horai.tenant where id = $1 and deleting_at is not null returning id, pg_notify('horai_wake', 'd');
