-- Definitions. Whoever adds instances to a job holds its row FOR KEY SHARE; whoever pauses or deletes it, FOR UPDATE.
-- A job's priority is its lane's: its own, or that of its queue.

-- name: insert_job
insert into horai.job (tenant_id, name, status, schedule_id, lane_id, definition, payload, tags, active_from,
    overlap, jitter_ms, start_at, end_at, after_finish, missed_from, paused_at)
values ($1, $2, $3::smallint, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, case when $3::smallint = 1 then clock_timestamp() end)
on conflict (tenant_id, name) where deleted_at is null do nothing
returning *, horai.priority_of(lane_id) as priority;

-- name: job_by_id
select *, horai.priority_of(lane_id) as priority from horai.job where tenant_id = $1 and id = $2 and deleted_at is null;

-- name: job_by_name
select *, horai.priority_of(lane_id) as priority from horai.job where tenant_id = $1 and name = $2 and deleted_at is null;

-- name: jobs_by_name
select *, horai.priority_of(lane_id) as priority from horai.job
where tenant_id = $1 and name = any ($2::text[]) and deleted_at is null order by name;

-- name: link_ticks
update horai.job set ticks_for = $2 where id = $1;

-- name: ticks_of
select *, horai.priority_of(lane_id) as priority from horai.job where ticks_for = $1 and deleted_at is null;

-- name: names_declared_by
-- The jobs ($3: the workflows) that an application's code has declared, at its last start or an earlier one.
select name from horai.job
where tenant_id = $1 and deleted_at is null and definition ->> 'declaredBy' = $2::text
    and $3::boolean = exists (select from horai.workflow where workflow.job_id = job.id) order by name;

-- name: lock_job
select *, horai.priority_of(lane_id) as priority from horai.job where id = $1 and deleted_at is null for update;

-- name: share_job
-- Held while instances are added: they land in the lane this row names, or a pause that follows will move them.
select *, horai.priority_of(lane_id) as priority from horai.job where id = $1 and deleted_at is null for key share;

-- name: held_job
-- For who holds the row, or knows of it from its instances: deleted ones too.
select *, horai.priority_of(lane_id) as priority from horai.job where id = $1;

-- name: lock_jobs
-- The tenant's jobs of these that are not in the state $3, with the ticks of refresh jobs, held in the order of their ids.
select *, horai.priority_of(lane_id) as priority from horai.job
where tenant_id = $1 and (id = any ($2::bigint[]) or ticks_for = any ($2::bigint[])) and status <> $3::smallint and deleted_at is null
order by id for update;

-- name: update_job
-- The caller holds the row, so no instance is added meanwhile: a job without waiting instances has none to move.
update horai.job
set status = $2::smallint, schedule_id = $3, lane_id = $4, definition = $5, payload = $6, tags = $7, active_from = $8,
    overlap = $9::smallint, jitter_ms = $10, start_at = $11, end_at = $12, after_finish = $13, missed_from = $14, note = $15,
    paused_at = case when $2::smallint = 1 then coalesce(paused_at, clock_timestamp()) end,
    relane = (relane or status <> $2::smallint or lane_id <> $4 or overlap <> $9::smallint)
        and exists (select from horai.instance_live live where live.job_id = $1 and live.state in (0, 3)),
    version = version + 1, updated_at = clock_timestamp()
where id = $1
returning *, horai.priority_of(lane_id) as priority;

-- name: delete_job
update horai.job set definition = $2, deleted_at = clock_timestamp(), relane = true, version = version + 1 where id = $1 returning id;

-- name: jobs_to_relane
select id, version, deleted_at is not null as is_deleted, case when status = 0 then lane_id else 0 end as lane,
    overlap <> 0 as is_gated from horai.job
where relane and id > $1 and ($3::bigint[] is null or id = any ($3)) order by id limit $2;

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
-- What Horai made for itself is shown with what it is for: ticks, and the jobs of workflows and reconcilers.
-- $11 the largest payload that is listed.
select id, tenant_id, name, status, schedule_id, lane_id, active_from, version, definition, tags, note, paused_at, missed_from, created_at,
    updated_at, ticks_for, horai.priority_of(lane_id) as priority, octet_length(payload::text) as payload_size,
    case when octet_length(payload::text) <= $11 then payload end as payload
from horai.job
where tenant_id = $1 and deleted_at is null and ticks_for is null and id > $2
    and ($4::text[] is null or name = any ($4)) and ($5::text is null or $5 = any (tags)) and ($6::smallint is null or status = $6)
    and ($7::text is null or lane_id in (select lane.id from horai.lane where lane.tenant_id = $1 and lane.queue = $7))
    and ($8::boolean is null or $8 = (id in (select ticks.ticks_for from horai.job ticks where ticks.ticks_for is not null and ticks.deleted_at is null)))
    and ($9::text is null or position(lower($9) in lower(name)) > 0)
    and lane_id not in (select lane.id from horai.lane where lane.tenant_id = $1 and starts_with(lane.handler, $10))
order by id limit $3;

-- name: jobs_to_run
-- What a dispatcher needs to know of the jobs whose instances it has claimed, deleted ones included; $2 the versions it
-- knows (0: none), which need not be read again. $3 those of the jobs that it knows to be in a workflow: a job enters and
-- leaves one without a change of its own.
select job.id, job.version, job.name, job.status, job.deleted_at is not null as is_deleted, tenant.name as tenant,
    job.overlap <> 0 or job.after_finish is not null as is_gated, chained.is_chained,
    json_build_object('target', job.definition -> 'target', 'retry', job.definition -> 'retry',
        'timeout', job.definition -> 'timeout') as recipe
from unnest($1::bigint[], $2::bigint[]) as known(id, version)
join horai.job on job.id = known.id
cross join lateral (select exists (select from horai.workflow_job where workflow_job.job_id = job.id) as is_chained) chained
join horai.tenant on tenant.id = job.tenant_id
where job.version <> known.version or chained.is_chained <> (job.id = any ($3::bigint[]));

-- name: lane_of
-- $3 null: the lane of jobs that state no priority and follow their queue's. A new lane joins its queue by itself.
with known as (
    select id from horai.lane
    where tenant_id = $1 and queue = $2 and handler = $4 and inherits = ($3::smallint is null) and (inherits or priority = $3)
), made as (
    insert into horai.lane (tenant_id, queue, priority, handler, inherits)
    select $1, $2, coalesce($3, 2), $4, $3 is null where not exists (select from known)
    on conflict do nothing returning id
)
select id from known union all select id from made;

-- name: lanes
-- Every lane with what its queue allows and its tenant's weight.
select lane.id, lane.tenant_id, lane.queue, lane.priority, lane.handler, lane.queue_id, tenant.weight,
    queue.max_concurrency, queue.rate_count, queue.rate_per, queue.paused
from horai.lane join horai.tenant on tenant.id = lane.tenant_id join horai.queue on queue.id = lane.queue_id
order by lane.id;

-- name: tenant_by_name
select id, name from horai.tenant where name = $1;

-- name: insert_event
insert into horai.event (tenant_id, job_id, kind, data) values ($1, $2, $3, $4);

-- name: insert_events
-- The same event of several jobs.
insert into horai.event (tenant_id, job_id, kind, data) select $1, job_id, $3, $4 from unnest($2::bigint[]) as job_id;
