-- Workflow definitions. A transaction that adds a job to a workflow locks the job FOR KEY SHARE;
-- one that deletes the job locks it FOR UPDATE.

-- name: insert_workflow
-- tenant: $1
insert into horai.workflow (tenant_id, name, job_id, nodes) values ($1, $2, $3, $4)
on conflict (tenant_id, name) where deleted_at is null do nothing
returning id;

-- name: workflow_by_id
-- tenant: $1
select * from horai.workflow where tenant_id = $1 and id = $2 and deleted_at is null;

-- name: workflow_by_name
-- tenant: $1
select * from horai.workflow where tenant_id = $1 and name = $2 and deleted_at is null;

-- name: workflow_of_job
-- tenant: by job
-- The workflow whose runs the instances of a job start, even if it is deleted.
select * from horai.workflow where job_id = $1;

-- name: lock_workflow
-- tenant: by workflow
-- Runs can start meanwhile: the next sweep gives up a run of a workflow that is being deleted.
select * from horai.workflow where id = $1 and deleted_at is null for no key update;

-- name: update_workflow
-- tenant: by workflow
update horai.workflow set nodes = $2, version = version + 1, updated_at = clock_timestamp() where id = $1 returning *;

-- name: delete_workflow
-- tenant: by workflow
update horai.workflow set deleted_at = clock_timestamp(), version = version + 1 where id = $1;

-- name: list_workflows
-- tenant: $1
select * from horai.workflow where tenant_id = $1 and deleted_at is null and id > $2 order by id limit $3;

-- name: share_node_jobs
-- tenant: $1
-- The jobs named, by id ($2) or by name ($3), locked so that none of them is deleted before the workflow exists.
select id, name, definition -> 'target' ->> 'handler' as handler, encrypted, search_paths from horai.job
where tenant_id = $1 and deleted_at is null and (id = any ($2::bigint[]) or name = any ($3::text[]))
order by id for key share;

-- name: join_workflow
-- tenant: by workflow
insert into horai.workflow_job (tenant_id, workflow_id, job_id)
select tenant_id, id, unnest($2::bigint[]) from horai.workflow where id = $1 on conflict do nothing;

-- name: leave_workflow
-- tenant: by workflow
delete from horai.workflow_job where workflow_id = $1 and job_id <> all ($2::bigint[]);

-- name: workflows_with
-- tenant: by job
-- The workflows that a job is a node of.
select workflow.name from horai.workflow_job join horai.workflow on workflow.id = workflow_job.workflow_id
where workflow_job.job_id = $1 and workflow.deleted_at is null order by workflow.name limit 10;
