-- Job definitions. A transaction that adds instances to a job locks its row FOR KEY SHARE; one that pauses or deletes the job
-- locks it FOR UPDATE. A job has the priority of its lane: its own priority, or that of its queue.

-- name: insert_job
-- tenant: $1
insert into horai.job (tenant_id, name, status, schedule_id, lane_id, definition, payload, tags, active_from,
    overlap, jitter_ms, start_at, end_at, after_finish, missed_from, paused_at, encrypted, search_paths)
values ($1, $2, $3::smallint, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, case when $3::smallint = 1 then clock_timestamp() end,
    coalesce(($6::json ->> 'encrypted')::boolean, false),
    array(select path from json_array_elements_text($6::json -> 'searchPaths') with ordinality as given(path, position) order by position))
on conflict (tenant_id, name) where deleted_at is null do nothing
returning *, horai.priority_of(lane_id) as priority;

-- name: job_by_id
-- tenant: $1
select *, horai.priority_of(lane_id) as priority from horai.job where tenant_id = $1 and id = $2 and deleted_at is null;

-- name: job_by_name
-- tenant: $1
select *, horai.priority_of(lane_id) as priority from horai.job where tenant_id = $1 and name = $2 and deleted_at is null;

-- name: jobs_by_name
-- tenant: $1
select *, horai.priority_of(lane_id) as priority from horai.job
where tenant_id = $1 and name = any ($2::text[]) and deleted_at is null order by name;

-- name: link_ticks
-- tenant: by job
update horai.job set ticks_for = $2 where id = $1;

-- name: ticks_of
-- tenant: by job
select *, horai.priority_of(lane_id) as priority from horai.job where ticks_for = $1 and deleted_at is null;

-- name: names_declared_by
-- tenant: $1
-- Returns the jobs (with $3, the workflows) that the code of an application declared at its last start or an earlier one.
select name from horai.job
where tenant_id = $1 and deleted_at is null and definition ->> 'declaredBy' = $2::text
    and $3::boolean = exists (select from horai.workflow where workflow.job_id = job.id) order by name;

-- name: lock_job
-- tenant: by job
select *, horai.priority_of(lane_id) as priority from horai.job where id = $1 and deleted_at is null for update;

-- name: share_job
-- tenant: by job
-- Locked while instances are added: they go to the lane in this row, or a later pause moves them.
select *, horai.priority_of(lane_id) as priority from horai.job where id = $1 and deleted_at is null for key share;

-- name: held_job
-- tenant: by job
-- For a caller that has locked the row or knows the id from an instance. Also returns deleted jobs.
select *, horai.priority_of(lane_id) as priority from horai.job where id = $1;

-- name: lock_jobs
-- tenant: $1
-- Locks those of the tenant's jobs $2 that do not have the status $3, and the tick jobs of refresh jobs, in id order.
select *, horai.priority_of(lane_id) as priority from horai.job
where tenant_id = $1 and (id = any ($2::bigint[]) or ticks_for = any ($2::bigint[])) and status <> $3::smallint and deleted_at is null
order by id for update;

-- name: update_job
-- tenant: by job
-- The caller has locked the row, so no instance is added meanwhile: a job without waiting instances has none to move.
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
-- tenant: by job
update horai.job set definition = $2, deleted_at = clock_timestamp(), relane = true, version = version + 1 where id = $1 returning id;

-- name: jobs_to_relane
-- tenant: platform
select id, version, deleted_at is not null as is_deleted, case when status = 0 then lane_id else 0 end as lane,
    overlap <> 0 as is_gated from horai.job
where relane and id > $1 order by id limit $2;

-- name: marked_jobs
-- tenant: by job
-- The same for the jobs $1.
select id, version, deleted_at is not null as is_deleted, case when status = 0 then lane_id else 0 end as lane,
    overlap <> 0 as is_gated from horai.job
where relane and id = any ($1::bigint[]) order by id limit $2;

-- name: share_version
-- tenant: by job
-- Locked while a batch of the job's rows moves. If the job was changed before, its rows belong to another lane; if it is
-- changed later, that change moves them again.
select id from horai.job where id = $1 and version = $2 for key share;

-- name: ask_relane
-- tenant: platform
-- Marks jobs with instances in a lane that is no longer the job's; the janitor moves them.
update horai.job set relane = true where id = any ($1::bigint[]) and not relane;

-- name: mark_relaned
-- tenant: by job
-- Clears the mark only for the version whose rows were moved: a change meanwhile needs another round.
update horai.job set relane = false where id = $1 and version = $2;

-- name: list_jobs
-- tenant: $1
-- ordered: list_jobs_newest by id desc
-- ordered: list_jobs_by_name by name
-- ordered: list_jobs_by_name_down by name desc
-- Excludes the jobs that Horai creates for itself: tick jobs, and the jobs of workflows and reconcilers. Each is shown with the
-- object that it belongs to. $9 is looked for in names and titles. $12: the largest
-- payload to return, in bytes.
select id, tenant_id, name, status, schedule_id, lane_id, active_from, version, definition, tags, note, paused_at, missed_from, created_at,
    updated_at, ticks_for, encrypted, search_paths, horai.priority_of(lane_id) as priority, octet_length(payload::text) as payload_size,
    case when octet_length(payload::text) <= $12 then payload end as payload
from horai.job
where tenant_id = $1 and deleted_at is null and ticks_for is null and (id) > ($2)
    and ($4::text[] is null or name = any ($4)) and ($5::text is null or $5 = any (tags)) and ($6::smallint is null or status = $6)
    and ($7::text is null or lane_id in (select lane.id from horai.lane where lane.tenant_id = $1 and lane.queue = $7))
    and ($8::boolean is null or $8 = (id in (select ticks.ticks_for from horai.job ticks where ticks.ticks_for is not null and ticks.deleted_at is null)))
    and ($9::text is null or position(lower($9) in lower(name)) > 0 or position(lower($9) in lower(definition ->> 'title')) > 0)
    and ($10::text is null or definition ->> 'owner' = $10)
    and lane_id not in (select lane.id from horai.lane where lane.tenant_id = $1 and starts_with(lane.handler, $11))
order by id limit $3;

-- name: count_jobs
-- tenant: $1
-- The jobs that match among the newest $10, and the number of these. $2 to $9: $4 to $11 of list_jobs.
select count(*) filter (
    where ($3::text is null or $3 = any (tags)) and ($4::smallint is null or status = $4)
        and ($5::text is null or lane_id in (select lane.id from horai.lane where lane.tenant_id = $1 and lane.queue = $5))
        and ($6::boolean is null or $6 = (id in (select ticks.ticks_for from horai.job ticks where ticks.ticks_for is not null and ticks.deleted_at is null)))
        and ($7::text is null or position(lower($7) in lower(name)) > 0 or position(lower($7) in lower(definition ->> 'title')) > 0)
        and ($8::text is null or definition ->> 'owner' = $8)
        and lane_id not in (select lane.id from horai.lane where lane.tenant_id = $1 and starts_with(lane.handler, $9))
) as matched, count(*) as looked_at
from (
    select id, name, tags, status, lane_id, definition from horai.job
    where deleted_at is null and tenant_id = $1 and ticks_for is null and ($2::text[] is null or name = any ($2))
    order by id desc limit $10::bigint
) newest;

-- name: jobs_to_run
-- tenant: by job
-- Returns the data that a dispatcher needs to run instances of these jobs, including deleted jobs. $2: the versions that it
-- already knows (0: none), which are not returned again. $3: the jobs that it knows to be in a workflow, or called by
-- durable functions; a job can enter and leave a workflow without a new version. $4: the schedules that it knows (null: any), which a change of a calendar replaces.
select job.id, job.version, job.name, job.status, job.deleted_at is not null as is_deleted, job.tenant_id, tenant.name as tenant,
    job.encrypted, job.overlap <> 0 or job.after_finish is not null as is_gated, chained.is_chained,
    json_build_object('target', job.definition -> 'target', 'retry', job.definition -> 'retry',
        'timeout', job.definition -> 'timeout') as recipe, schedule.spec, coalesce(job.schedule_id, 0) as schedule_id
from unnest($1::bigint[], $2::bigint[], $4::bigint[]) as known(id, version, schedule_id)
join horai.job on job.id = known.id
cross join lateral (select exists (select from horai.workflow_job where workflow_job.job_id = job.id)
    or exists (select from horai.asset_use made where made.job_id = job.id and made.role = 0 and made.node = '')
    or exists (select from horai.called_job where called_job.job_id = job.id) as is_chained) chained
join horai.tenant on tenant.id = job.tenant_id
left join horai.schedule on schedule.id = job.schedule_id
where job.version <> known.version or chained.is_chained <> (job.id = any ($3::bigint[]))
    or coalesce(job.schedule_id, 0) <> known.schedule_id;

-- name: tenant_by_name
-- tenant: platform
select id, name from horai.tenant where name = $1;

-- name: has_encrypted
-- tenant: $1
select exists (select from horai.job where tenant_id = $1 and encrypted and deleted_at is null);

-- name: insert_event
-- tenant: $1
insert into horai.event (tenant_id, job_id, kind, data) values ($1, $2, $3, $4);

-- name: insert_events
-- tenant: $1
-- Inserts the same event for several jobs.
insert into horai.event (tenant_id, job_id, kind, data) select $1, job_id, $3, $4 from unnest($2::bigint[]) as job_id;
