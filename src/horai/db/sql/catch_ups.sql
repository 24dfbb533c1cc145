-- Late slots that are not created yet. The transaction that creates some of them also moves next_time.

-- name: defer_slots
-- tenant: platform
-- Registers the late slots $2 to $3 of a schedule for each of its jobs that was active then. The catch-up stage creates them
-- in small batches.
insert into horai.catchup (tenant_id, job_id, schedule_id, next_time, until_time)
select tenant_id, id, schedule_id, greatest($2, active_from + interval '1 microsecond', start_at), least($3, end_at) from horai.job
where schedule_id = $1 and status = 0 and deleted_at is null and active_from < $3
    and (start_at is null or start_at <= $3) and (end_at is null or end_at >= $3);

-- name: ended_meanwhile
-- tenant: platform
-- Returns the jobs of a schedule whose end_at lies within its late slots $2 to $3. The misfire policy is applied
-- to each of them separately, over its own slots.
select id, end_at, greatest($2, active_from + interval '1 microsecond', start_at) as first from horai.job
where schedule_id = $1 and status = 0 and deleted_at is null and end_at >= $2 and end_at < $3
    and active_from < end_at and (start_at is null or start_at <= end_at);

-- name: defer_slots_of_job
-- tenant: by job
-- The same for one job that its schedule has already passed.
insert into horai.catchup (tenant_id, job_id, schedule_id, next_time, until_time)
select tenant_id, id, $2, greatest($3, start_at), least($4, end_at) from horai.job
where id = $1 and (start_at is null or start_at <= $4) and (end_at is null or end_at >= $3);

-- name: has_catchups
-- tenant: platform
select exists (select from horai.catchup);

-- name: take_catchups
-- tenant: platform
-- Locks a page of catch-ups after id $1, for jobs of these shards that are not paused. Skips catch-ups that another transaction
-- has locked, and jobs that another transaction is changing. New slots go to the lane in this version of the job row; a later
-- change of the job moves them.
select catchup.id, catchup.job_id, catchup.next_time, catchup.until_time, job.lane_id, job.overlap <> 0 as is_gated, schedule.spec
from horai.catchup
join horai.job on job.id = catchup.job_id and job.status = 0 and job.deleted_at is null
join horai.schedule on schedule.id = catchup.schedule_id
where catchup.id > $1 and catchup.job_id % $4::bigint = any ($3::bigint[])
order by catchup.id limit $2
for update of catchup skip locked for key share of job skip locked;

-- name: make_late_slots
-- tenant: by job
-- moves: -> INIT
-- Creates single slots: $1 jobs, $2 fire times. Also creates the slot that follows the end of a run.
with made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
    select fresh.id, fresh.job_id, fresh.tenant_id, fresh.lane, fresh.id % $3, fresh.fire_time, fresh.execute_time, fresh.fire_time,
        greatest(fresh.execute_time, clock_timestamp()), 0, fresh.payload
    from (
        select nextval('horai.instance_id') as id, job.id as job_id, job.tenant_id, job.payload, late.fire_time,
            case when job.overlap = 0 then job.lane_id else 0 end as lane, late.fire_time + horai.spread(job.id, job.jitter_ms) as execute_time
        from unnest($1::bigint[], $2::timestamptz[]) with ordinality as late(job_id, fire_time, position)
        join horai.job on job.id = late.job_id and job.deleted_at is null
        order by late.position
    ) fresh
    on conflict (job_id, fire_time, slot) do nothing
    returning id, tenant_id, job_id, lane, due
), indexed as (
    insert into horai.payload_digest (tenant_id, job_id, instance_id, path, digest)
    select made.tenant_id, made.job_id, made.id, own.path, own.digest
    from made join horai.payload_digest own on own.instance_id = 0 and own.job_id = any (array[made.job_id])
)
select id, job_id, lane, due from made;

-- name: move_catchups
-- tenant: platform
-- Writes the next slot of each catch-up; null deletes the catch-up, because all of its slots are created.
with step as (
    select * from unnest($1::bigint[], $2::timestamptz[]) as s(id, next_time)
), done as (
    delete from horai.catchup using step where catchup.id = step.id and step.next_time is null
)
update horai.catchup set next_time = step.next_time from step where catchup.id = step.id and step.next_time is not null;

-- name: give_up_catchups
-- tenant: by job
-- Deletes the remaining catch-ups of a job and records their slots as skipped, with the reason $2.
with gone as (
    delete from horai.catchup where job_id = $1 returning *
)
insert into horai.skip (tenant_id, schedule_id, job_id, from_time, to_time, reason)
select tenant_id, schedule_id, job_id, next_time, until_time, $2 from gone;

-- name: late_slots_left
-- tenant: platform
-- Returns the given late slots that have not ended, and whether each still waits to start. A claim is not a start: if the host
-- has no room, the dispatcher releases the instance at once, and it waits until later than its execute_time.
-- An instance that is delayed by jitter or by its handler does not count as waiting: its execute_time is later too.
select id, case state
    when 0 then due > execute_time or (attempt = 0 and due <= clock_timestamp())
    when 1 then claimed_at > clock_timestamp() - interval '0.5 s'
    else false end as is_waiting
from horai.instance_live where id = any ($1::bigint[]);
