-- Secrets of targets and sources that were stored before there was an encryption key.

-- name: plain_targets
-- tenant: platform
-- Returns a page of jobs of all tenants whose target may have secrets that are not sealed, by id.
select id, tenant_id, name, version, definition from horai.job
where id > $1 and deleted_at is null and definition #>> '{target,type}' = 'http' and definition #> '{target,sealed}' is null
    and (definition #>> '{target,url}' like '%?%' or definition #>> '{target,headers}' like '%:%')
order by id limit $2;

-- name: store_sealed_target
-- tenant: $2
-- A job that was changed meanwhile has another version, and its change has sealed its target. The version stays: nothing that
-- a reader sees has changed.
update horai.job set definition = $4 where id = $1 and tenant_id = $2 and version = $3;

-- name: plain_sources
-- tenant: platform
-- Returns a page of reconcilers of all tenants whose source may have secrets that are not sealed, by id.
select r.id, r.tenant_id, job.name, r.source_version, r.source from horai.reconciler r
join horai.job on job.id = r.job_id and job.deleted_at is null
where r.id > $1 and r.source -> 'sealed' is null and r.source ->> 'type' in ('http', 'sql') order by r.id limit $2;

-- name: store_sealed_source
-- tenant: $2
-- The version of the source stays, so that current runs continue.
update horai.reconciler set source = $4 where id = $1 and tenant_id = $2 and source_version = $3;
