-- Workflow definitions. A transaction that adds a job to a workflow locks the job FOR KEY SHARE;
-- one that deletes the job locks it FOR UPDATE.

-- name: insert_workflow
-- tenant: $1
insert into horai.workflow (tenant_id, name, job_id, nodes, params) values ($1, $2, $3, $4, $5)
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
update horai.workflow set nodes = $2, params = $3, version = version + 1, updated_at = clock_timestamp() where id = $1 returning *;

-- name: delete_workflow
-- tenant: by workflow
update horai.workflow set deleted_at = clock_timestamp(), version = version + 1 where id = $1;

-- name: list_workflows
-- tenant: $1
-- $4 is looked for in names and titles; $5 owner, $6 tag, $7 status of the job that starts the runs.
select workflow.* from horai.workflow join horai.job on job.id = workflow.job_id
where workflow.tenant_id = $1 and workflow.deleted_at is null and workflow.id > $2
    and ($4::text is null or position(lower($4) in lower(workflow.name)) > 0 or position(lower($4) in lower(job.definition ->> 'title')) > 0)
    and ($5::text is null or job.definition ->> 'owner' = $5) and ($6::text is null or $6 = any (job.tags))
    and ($7::smallint is null or job.status = $7)
order by workflow.id limit $3;

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
-- The workflows that a job is a node of; those that are forms of compositions come last.
select workflow.name, own.tags @> array['composed'] as is_form
from horai.workflow_job join horai.workflow on workflow.id = workflow_job.workflow_id join horai.job own on own.id = workflow.job_id
where workflow_job.job_id = $1 and workflow.deleted_at is null order by is_form, workflow.name limit 10;

-- name: workflows_below
-- tenant: by job
-- The workflows of the jobs $1, and those that these start runs of, at most $2 levels deep. A circle ends with the levels.
with recursive below(job_id, level) as (
    select flow.job_id, 1 from horai.workflow flow where flow.job_id = any ($1::bigint[]) and flow.deleted_at is null
    union
    select inner_flow.job_id, below.level + 1 from below
    join horai.workflow flow on flow.job_id = below.job_id and flow.deleted_at is null
    join horai.workflow_job member on member.workflow_id = flow.id
    join horai.workflow inner_flow on inner_flow.job_id = member.job_id and inner_flow.deleted_at is null
    where below.level < $2
)
select job_id, max(level)::integer as level from below group by job_id order by job_id;
