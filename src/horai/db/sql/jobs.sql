-- Definitions. Whoever adds instances to a job holds its row FOR KEY SHARE; whoever pauses or deletes it, FOR UPDATE.

-- name: insert_job
insert into horai.job (tenant_id, name, status, schedule_id, lane_id, definition, payload, tags, active_from)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (tenant_id, name) where deleted_at is null do nothing
returning *;

-- name: job_by_id
select * from horai.job where tenant_id = $1 and id = $2 and deleted_at is null;

-- name: job_by_name
select * from horai.job where tenant_id = $1 and name = $2 and deleted_at is null;

-- name: lock_job
select * from horai.job where id = $1 and deleted_at is null for update;

-- name: share_job
-- Held while instances are added: they land in the lane this row names, or a pause that follows will move them.
select * from horai.job where id = $1 and deleted_at is null for key share;

-- name: update_job
update horai.job
set status = $2::smallint, schedule_id = $3, lane_id = $4, definition = $5, payload = $6, tags = $7, active_from = $8, note = $9,
    paused_at = case when $2::smallint = 1 then coalesce(paused_at, clock_timestamp()) end,
    relane = relane or status <> $2::smallint or lane_id <> $4, version = version + 1, updated_at = clock_timestamp()
where id = $1
returning *;

-- name: delete_job
update horai.job set deleted_at = clock_timestamp(), relane = true, version = version + 1 where id = $1 returning id;

-- name: jobs_to_relane
select id, version, deleted_at is not null as is_deleted, case when status = 0 then lane_id else 0 end as lane from horai.job
where relane and ($1::bigint is null or id = $1) order by id limit $2;

-- name: share_version
-- Held while a batch of the job's rows moves: a job changed before wants them elsewhere, and one changed after moves them again.
select id from horai.job where id = $1 and version = $2 for key share;

-- name: ask_relane
-- Instances were met in a lane that is not their job's any more: whoever tidies moves them.
update horai.job set relane = true where id = any ($1::bigint[]) and not relane;

-- name: mark_relaned
-- Only for the version whose rows were moved: a change meanwhile asks for another round.
update horai.job set relane = false where id = $1 and version = $2;

-- name: list_jobs
select * from horai.job
where tenant_id = $1 and deleted_at is null and id > $2
    and ($4::text is null or name = $4) and ($5::text is null or $5 = any (tags)) and ($6::smallint is null or status = $6)
    and ($7::text is null or lane_id in (select lane.id from horai.lane where lane.tenant_id = $1 and lane.queue = $7))
order by id limit $3;

-- name: jobs_to_run
-- What a dispatcher needs to know of the jobs whose instances it has claimed, deleted ones included.
select job.id, job.name, job.status, job.definition, job.deleted_at is not null as is_deleted, tenant.name as tenant,
    array(
        select secret.secret from horai.signing_secret secret
        where secret.tenant_id = job.tenant_id and secret.retired_at is null order by secret.id desc
    ) as secrets
from horai.job join horai.tenant on tenant.id = job.tenant_id
where job.id = any ($1::bigint[]);

-- name: lane_of
with made as (
    insert into horai.lane (tenant_id, queue, priority, handler) values ($1, $2, $3, $4) on conflict do nothing returning id
)
select id from made
union all
select id from horai.lane where tenant_id = $1 and queue = $2 and priority = $3 and handler = $4
limit 1;

-- name: lanes
select id, tenant_id, queue, priority, handler from horai.lane order by id;

-- name: tenant_by_name
select id, name from horai.tenant where name = $1;

-- name: insert_event
insert into horai.event (tenant_id, job_id, kind, data) values ($1, $2, $3, $4);
