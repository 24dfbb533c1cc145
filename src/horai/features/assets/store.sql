-- Assets, their updates, and the jobs that produce them or wait for them. A transaction that changes the uses of a tenant's assets holds an
-- advisory lock, so that two of them cannot close a circle together.

-- name: lock_asset_uses
-- tenant: none
select pg_advisory_xact_lock(1215263337, $1), pg_notify('horai_wake', 'u');

-- name: uses_of_job
-- tenant: by job
select made.role, asset.name, made.node, waits.is_any from horai.asset_use made join horai.asset on asset.id = made.asset_id
left join horai.asset_wait waits on waits.job_id = made.job_id where made.job_id = $1;

-- name: node_assets_of_job
-- tenant: by job
-- The assets that nodes of a workflow produce, whose runs the instances of the job start.
select node ->> 'name' as node, asset as name from horai.workflow cross join lateral json_array_elements(workflow.nodes) as node
cross join lateral json_array_elements_text(node -> 'produces') as asset
where workflow.job_id = $1 and workflow.deleted_at is null;

-- name: add_assets
-- tenant: $1
insert into horai.asset (tenant_id, name) select $1, unnest($2::text[]) on conflict do nothing;

-- name: keep_asset_uses
-- tenant: $1
-- Replaces the uses of the job $2. Those that stay keep the time since which successes count. Pending updates of assets that the job does not
-- wait for any more are forgotten.
with wish as materialized (
    select wished.role, asset.id as asset_id, wished.node from unnest($3::smallint[], $4::text[], $5::text[]) as wished(role, name, node)
    join horai.asset on asset.tenant_id = $1 and asset.name = wished.name
), gone as (
    delete from horai.asset_use made where made.tenant_id = $1 and made.job_id = $2
        and not exists (select from wish where wish.role = made.role and wish.asset_id = made.asset_id and wish.node = made.node)
), forgotten as (
    delete from horai.asset_delivery pending where pending.tenant_id = $1 and pending.job_id = $2 and pending.instance_id is null
        and not exists (select from wish where wish.role = 1 and wish.asset_id = pending.asset_id)
)
insert into horai.asset_use (tenant_id, job_id, role, asset_id, node) select $1, $2, role, asset_id, node from wish on conflict do nothing;

-- name: keep_asset_wait
-- tenant: $1
insert into horai.asset_wait (tenant_id, job_id, is_any) values ($1, $2, $3) on conflict (job_id) do update set is_any = excluded.is_any;

-- name: drop_asset_wait
-- tenant: $1
delete from horai.asset_wait where tenant_id = $1 and job_id = $2;

-- name: asset_edges
-- tenant: $1
-- What follows what: a job updates assets, an asset starts jobs, a workflow runs jobs. An asset has a name with a colon in front.
select job.name as source, ':' || asset.name as target
from horai.asset_use made join horai.asset on asset.id = made.asset_id join horai.job on job.id = made.job_id
where made.tenant_id = $1 and made.role = 0 and job.deleted_at is null
union all
select ':' || asset.name, job.name
from horai.asset_use made join horai.asset on asset.id = made.asset_id join horai.job on job.id = made.job_id
where made.tenant_id = $1 and made.role = 1 and job.deleted_at is null
union all
select workflow.name, job.name from horai.workflow_job member
join horai.workflow on workflow.id = member.workflow_id and workflow.deleted_at is null join horai.job on job.id = member.job_id
where member.tenant_id = $1;

-- name: clear_asset_uses
-- tenant: by job
-- Deletes up to $2 rows of a deleted job $1: what it waits for and produces, and updates that it did not start with.
with gone as (
    delete from horai.asset_use where job_id = $1 returning job_id
), unmade as (
    delete from horai.asset_wait where job_id = $1 returning job_id
), pending as materialized (
    select job_id, update_id from horai.asset_delivery where job_id = $1 and instance_id is null limit $2
), forgotten as (
    delete from horai.asset_delivery told using pending where told.job_id = pending.job_id and told.update_id = pending.update_id returning told.job_id
)
select (select count(*) from gone) + (select count(*) from unmade) + (select count(*) from forgotten);

-- name: has_asset_uses
-- tenant: by job
select exists (select from horai.asset_use where job_id = $1) or exists (select from horai.asset_delivery where job_id = $1 and instance_id is null);

-- name: pending_updates
-- tenant: by job
-- The updates that a job did not start with yet, oldest first.
select made.id, asset.name as asset, made.at, job.name as job, made.instance_id, made.run_id, made.node, made.interval_start, made.interval_end,
    made.metadata::text as metadata
from horai.asset_delivery told join horai.asset_update made on made.id = told.update_id join horai.asset on asset.id = made.asset_id
left join horai.job on job.id = made.job_id
where told.job_id = $1 and told.instance_id is null order by made.id;

-- name: note_asset_update
-- tenant: $1
select update_id, is_new from horai.note_asset_update($1, $2, $3::json, $4, $5, $6, $7);

-- name: list_assets
-- tenant: $1
-- `last_…`: the job and the instance of the newest update, or the actor of one from outside.
select asset.id, asset.name, asset.created_at, newest.at as updated_at, newest.updates, last.job as last_job, last.instance_id as last_instance_id,
    last.actor as last_actor, array(select distinct job.name from horai.asset_use made join horai.job on job.id = made.job_id
        where made.asset_id = asset.id and made.role = 0 and job.deleted_at is null order by 1) as producers,
    array(select distinct job.name from horai.asset_use made join horai.job on job.id = made.job_id
        where made.asset_id = asset.id and made.role = 1 and job.deleted_at is null order by 1) as consumers
from horai.asset cross join lateral (
    select max(made.at) as at, count(*) as updates from (
        select at from horai.asset_update where asset_id = asset.id order by id desc limit 1000) made
) newest left join lateral (
    select job.name as job, made.instance_id, made.actor from horai.asset_update made left join horai.job on job.id = made.job_id
    where made.asset_id = asset.id order by made.id desc limit 1
) last on true
where asset.tenant_id = $1 and asset.name > $2 and ($4::text is null or asset.name = $4) order by asset.name limit $3;

-- name: uses_of_asset
-- tenant: $1
-- The jobs that produce an asset or wait for it. `pending`: its updates that a job did not start with yet, up to 1,000.
select made.role, job.id as job_id, job.name as job, made.node, exists (select from horai.workflow where workflow.job_id = job.id) as is_workflow,
    job.status = 1 as is_paused, coalesce(waits.is_any, false) as is_any, (
        select count(*) from (select from horai.asset_delivery told where told.job_id = made.job_id and told.asset_id = made.asset_id
            and told.instance_id is null limit 1000) few) as pending
from horai.asset_use made join horai.job on job.id = made.job_id left join horai.asset_wait waits on waits.job_id = made.job_id
where made.tenant_id = $1 and made.asset_id = $2 and job.deleted_at is null order by made.role, job.name, made.node;

-- name: updates_of_asset
-- tenant: $1
-- A page of the updates of an asset, newest first, before the id $3. `started`: the instances that were started with it.
select made.id, made.at, job.name as job, made.instance_id, made.run_id, made.node, made.interval_start, made.interval_end,
    made.metadata::text as metadata, made.actor,
    array(select told.instance_id from horai.asset_delivery told where told.update_id = made.id and told.instance_id is not null
        order by told.instance_id limit 100) as started
from horai.asset_update made left join horai.job on job.id = made.job_id
where made.tenant_id = $1 and made.asset_id = $2 and made.id < $3 order by made.id desc limit $4;
