-- Backfills. A step that creates slots of a backfill locks its row and moves next_time in the same transaction. Its live
-- instances are in backfill_instance, so that every node that counts them keeps the same cap.

-- name: insert_backfill
-- tenant: $1
-- Returns no row if its request was made before.
insert into horai.backfill (tenant_id, job_id, spec, from_time, to_time, next_time, until_time, mode, max_concurrency, rate_count, rate_per,
    slots, total, note, request_key, request_hash, looked_at, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, clock_timestamp(), clock_timestamp(), clock_timestamp())
on conflict (tenant_id, job_id, request_key) where request_key is not null do nothing
returning id;

-- name: backfill_of_request
-- tenant: $1
select id, request_hash from horai.backfill where tenant_id = $1 and job_id = $2 and request_key = $3;

-- name: backfill_by_id
-- tenant: $1
select backfill.*, job.name as job, clock_timestamp() as now
from horai.backfill join horai.job on job.id = backfill.job_id
where backfill.tenant_id = $1 and backfill.id = $2;

-- name: lock_backfill
-- tenant: $1
-- Locks the row for a change by a user; waits for a step of the engine.
select backfill.*, job.name as job, clock_timestamp() as now
from horai.backfill join horai.job on job.id = backfill.job_id
where backfill.tenant_id = $1 and backfill.id = $2 for update of backfill;

-- name: list_backfills
-- tenant: $1
-- Newest first, before $2.
select backfill.*, job.name as job, clock_timestamp() as now
from horai.backfill join horai.job on job.id = backfill.job_id
where backfill.tenant_id = $1 and backfill.id < $2 and ($4::bigint is null or backfill.job_id = $4)
    and ($5::smallint is null or backfill.status = $5)
order by backfill.id desc limit $3;

-- name: set_backfill_status
-- tenant: by backfill
-- Resets looked_at: the time before this change says nothing about the pace after it.
update horai.backfill set status = $2::smallint, note = coalesce($3, note), looked_at = clock_timestamp(), updated_at = clock_timestamp()
where id = $1;

-- name: open_backfills
-- tenant: platform
-- Backfills of these shards with slots to create, live instances, or a status to close. A backfill that is paused, or whose
-- job is, and that has no live instance costs nothing: the process that resumes it sends a wake.
select backfill.id from horai.backfill join horai.job on job.id = backfill.job_id
where backfill.finished_at is null and backfill.job_id % $2::bigint = any ($1::bigint[]) and (
    job.deleted_at is not null or backfill.status = 3 or backfill.status = 0 and job.status = 0
    or exists (select from horai.backfill_instance own where own.backfill_id = backfill.id))
order by backfill.id;

-- name: has_open_backfill
-- tenant: by job
select exists (select from horai.backfill where job_id = $1 and finished_at is null);

-- name: take_backfill
-- tenant: platform
-- Locks its row and the job's row until commit, without waiting: two transactions never create slots of one job at once, and
-- a pause or change of the job waits. Transactions that add other instances to the job are not blocked.
select backfill.*, job.name as job, job.status as job_status, job.deleted_at is not null as is_job_deleted, clock_timestamp() as now
from horai.backfill join horai.job on job.id = backfill.job_id
where backfill.id = $1 and backfill.finished_at is null
for update of backfill skip locked for no key update of job skip locked;

-- name: settle_backfill
-- tenant: platform
-- Deletes and counts the entries whose instances have ended since the last step. An instance in neither table was deleted by
-- hand. $2: no instance can have ended before. One snapshot reads both tables: a row that moves is in one of them.
with gone as materialized (
    select own.instance_id from horai.backfill_instance own
    where own.backfill_id = $1 and not exists (select from horai.instance_live live where live.id = own.instance_id)
), forgotten as (
    delete from horai.backfill_instance own using gone where own.instance_id = gone.instance_id
)
select count(*) filter (where past.state = 2) as succeeded, count(*) filter (where past.state = 4) as failed,
    count(*) filter (where past.state is null or past.state = 5) as cancelled
from gone left join horai.instance_history past on past.id = gone.instance_id and past.finished_at >= $2;

-- name: coming_slots
-- tenant: by job
-- The slots that the job $1 gets without a backfill: since when its schedule has not reached its slots, or a resume decides
-- on them, and the late slots still to be created. Read before `known_slots`: slots created in between are known then.
select job.active_from,
    case when job.status = 1 then coalesce(job.missed_from, job.active_from)
        when job.id <= schedule.last_job then schedule.fire_time + interval '1 microsecond'
        else schedule.fire_time end as since,
    array(select next_time from horai.catchup where job_id = $1 order by id) as late_from,
    array(select until_time from horai.catchup where job_id = $1 order by id) as late_until,
    job.created_at, case when history.since > job.created_at then history.since end as kept_from
from horai.job left join horai.schedule on schedule.id = job.schedule_id
cross join lateral horai.kept_from(job.tenant_id, job.id) as history(since)
where job.id = $1;

-- name: known_slots
-- tenant: by job
-- The slots of the job $1 from $2 to $3 that were created: the highest generation of each, whether it has a live instance, and
-- the last instance if it is dead and its letter is open, or its run is blocked. No slot is created before its time, so none
-- has ended before $2.
with made as (
    select fire_time, slot, id, state, true as is_live from horai.instance_live
    where job_id = $1 and fire_time between $2 and $3 and slot >= 0
    union all
    select fire_time, slot, id, state, false from horai.instance_history
    where job_id = $1 and fire_time between $2 and $3 and slot >= 0 and finished_at >= $2
), newest as (
    select distinct on (fire_time) fire_time, slot as generation, id, state, bool_or(is_live) over (partition by fire_time) as is_live
    from made order by fire_time, slot desc
)
select fire_time, generation, is_live, case when state = 4 and (not exists (
        select from horai.dead_letter letter where letter.instance_id = newest.id and letter.replay_status <> 'NEW')
    or exists (select from horai.workflow_run run where run.id = newest.id and run.phase = 1)) then id end as dead
from newest;

-- name: low_lane
-- tenant: by job
-- The low-priority lane beside the job's own; created if needed.
with own as (
    select lane.tenant_id, lane.queue, lane.handler from horai.job join horai.lane on lane.id = job.lane_id where job.id = $1
), known as (
    select lane.id from horai.lane join own using (tenant_id, queue, handler) where not lane.inherits and lane.priority = $2
), made as (
    insert into horai.lane (tenant_id, queue, priority, handler, inherits)
    select tenant_id, queue, $2, handler, false from own where not exists (select from known)
    on conflict do nothing returning id
)
select id from known union all select id from made;

-- name: make_backfill_slots
-- tenant: platform
-- moves: -> INIT
-- Inserts slots $5 of the job $2 in their generations $6, to start at $7, in the lane $3. They bypass the overlap gate. Slots
-- that exist are left unchanged.
with made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
    select fresh.id, job.id, job.tenant_id, $3, fresh.id % $4, fresh.fire_time, fresh.at, fresh.fire_time,
        greatest(fresh.at, clock_timestamp()), fresh.generation, job.payload
    from horai.job cross join (
        select nextval('horai.instance_id') as id, slot.fire_time, slot.generation, slot.at
        from unnest($5::timestamptz[], $6::bigint[], $7::timestamptz[]) with ordinality as slot(fire_time, generation, at, position)
        order by slot.position
    ) fresh
    where job.id = $2
    on conflict (job_id, fire_time, slot) do nothing
    returning id, tenant_id, lane, due
), own as (
    insert into horai.backfill_instance (instance_id, backfill_id, tenant_id)
    select made.id, backfill.id, backfill.tenant_id from made join horai.backfill on backfill.id = $1
), indexed as (
    insert into horai.payload_digest (tenant_id, job_id, instance_id, path, digest)
    select made.tenant_id, $2, made.id, own.path, own.digest
    from made join horai.payload_digest own on own.instance_id = 0 and own.job_id = $2
)
select id, lane, due from made;

-- name: write_backfill
-- tenant: platform
-- Writes the progress; the caller has locked the row.
update horai.backfill
set next_time = $2, next_start = $3, made = $4, skipped = $5, succeeded = $6, failed = $7, cancelled = $8, pace = $9,
    status = $10::smallint, note = coalesce($11, note), looked_at = clock_timestamp(), updated_at = clock_timestamp(),
    finished_at = case when $12::boolean then clock_timestamp() end
where id = $1;

-- name: waiting_of_backfill
-- tenant: by backfill
-- Its instances that have not started, or that wait for a retry.
select live.id from horai.backfill_instance own join horai.instance_live live on live.id = own.instance_id
where own.backfill_id = $1 and live.state <> 1 order by live.id;
