-- Schedules and the creation of their slots. The cursor is the guard: it moves in the transaction that creates the slot.

-- name: share_schedule
-- tenant: none
-- Locked by a transaction that adds, changes or resumes a job of this schedule. The trigger's FOR UPDATE and this lock exclude
-- each other. Does not lock a sleeping schedule: two transactions that share it and then both wake it would deadlock.
select id, fire_time, last_job from horai.schedule where identity = $1 and fire_time is not null for share;

-- name: share_schedule_of
-- tenant: none
-- The same for the schedule that a job is going to leave.
select id, fire_time, last_job from horai.schedule where id = $1 and fire_time is not null for share;

-- name: wake_schedule
-- tenant: none
-- Creates the schedule, or wakes a sleeping one.
insert into horai.schedule as known (identity, spec, fire_time, passed, wall, tzdata) values ($1, $2, $3, $4, $5, $6)
on conflict (identity) do update set fire_time = coalesce(known.fire_time, excluded.fire_time),
    passed = case when known.fire_time is null then excluded.passed else known.passed end,
    wall = case when known.fire_time is null then excluded.wall else known.wall end,
    tzdata = case when known.fire_time is null then excluded.tzdata else known.tzdata end
returning id, fire_time, last_job;

-- name: coming_schedules
-- tenant: platform
-- Returns the schedules of these shards that fire until $1; they fill the timer wheel.
select id, fire_time from horai.schedule where fire_time <= $1 and id % $4::bigint = any ($3::bigint[]) order by fire_time limit $2;

-- name: lock_schedules
-- tenant: platform
-- The database decides whether a slot is due. Skips a schedule that another transaction has locked; the next call finds it.
select id, spec, fire_time, last_job, fire_time <= clock_timestamp() as is_due, clock_timestamp() as now,
    passed, wall, tzdata is distinct from $2 as is_stale
from horai.schedule
where id = any ($1::bigint[]) order by id for update skip locked;

-- name: make_slots
-- tenant: platform
-- moves: -> INIT
-- Creates one slot per schedule for the next $4 of its jobs that have not ended; does not change an existing slot. Slots of a
-- job that does not allow overlap start in the parking lane, and its overlap gate releases them. $6: schedules whose slot the governor
-- leaves out for jobs of low priority; such a slot is recorded as skipped.
with fire as (
    select * from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $6::boolean[]) as f(schedule_id, fire_time, last_job, is_thinned)
), chosen as materialized (
    select fire.schedule_id, fire.fire_time, job.id as job_id, job.tenant_id, job.payload,
        case when job.overlap = 0 then job.lane_id else 0 end as lane,
        fire.fire_time + horai.spread(job.id, job.jitter_ms) as execute_time,
        job.active_from < fire.fire_time and (job.start_at is null or job.start_at <= fire.fire_time) as is_active,
        fire.is_thinned and exists (select from horai.lane where lane.id = job.lane_id and lane.priority = 3) as is_thinned,
        nextval('horai.instance_id') as id
    from fire cross join lateral (
        select * from horai.job
        where job.schedule_id = fire.schedule_id and job.id > fire.last_job and job.status = 0 and job.deleted_at is null
            and (job.end_at is null or job.end_at >= fire.fire_time)
        order by job.id limit $4
    ) job
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
    select id, job_id, tenant_id, lane, id % $5, fire_time, execute_time, fire_time, greatest(execute_time, clock_timestamp()), 0, payload
    from chosen where is_active and not is_thinned
    on conflict (job_id, fire_time, slot) do nothing
    returning id, tenant_id, job_id, lane, due
), thinned as (
    insert into horai.skip (tenant_id, schedule_id, job_id, from_time, to_time, slots, reason)
    select tenant_id, schedule_id, job_id, fire_time, fire_time, 1, 'THINNED' from chosen where is_active and is_thinned
), indexed as (
    insert into horai.payload_digest (tenant_id, job_id, instance_id, path, digest)
    select made.tenant_id, made.job_id, made.id, own.path, own.digest
    from made join horai.payload_digest own on own.instance_id = 0 and own.job_id = any (array[made.job_id])
)
select chosen.schedule_id, count(*) as jobs, max(chosen.job_id) as last_job, count(made.job_id) as made,
    coalesce(array_agg(distinct made.lane) filter (where made.lane <> 0), '{}') as lanes, min(made.due) as due,
    coalesce(array_agg(made.job_id) filter (where made.lane = 0), '{}') as gated
from chosen left join made on made.job_id = chosen.job_id
group by chosen.schedule_id;

-- name: slots_made
-- tenant: platform
-- Runs after make_slots in its transaction, only while traces are on. $3 and $4: the jobs of the chunk.
select made.id
from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[]) as fire(schedule_id, fire_time, after_job, last_job)
cross join lateral (
    select live.id from horai.job
    join horai.instance_live live on live.job_id = job.id and live.fire_time = fire.fire_time and live.slot = 0
    where job.schedule_id = fire.schedule_id and job.id > fire.after_job and job.id <= fire.last_job
) made limit 10000;

-- name: advance_schedules
-- tenant: platform
-- Between two chunks of a slot the mark does not change: it was computed with the zone rules in force when the slot was started.
update horai.schedule schedule
set fire_time = step.next_fire, last_job = step.next_job,
    passed = case when step.last_job > 0 and step.next_job > 0 then schedule.passed else step.passed end,
    wall = case when step.last_job > 0 and step.next_job > 0 then schedule.wall else step.wall end,
    tzdata = case when step.last_job > 0 and step.next_job > 0 then schedule.tzdata else $8 end
from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::timestamptz[], $5::bigint[], $6::timestamptz[], $7::timestamp[])
    as step(id, fire_time, last_job, next_fire, next_job, passed, wall)
where schedule.id = step.id and schedule.fire_time = step.fire_time and schedule.last_job = step.last_job
returning schedule.id;

-- name: insert_skip
-- tenant: by job
-- $2: null for the slots of every job of the schedule.
insert into horai.skip (tenant_id, schedule_id, job_id, from_time, to_time, slots, reason)
values ((select tenant_id from horai.job where id = $2), $1, $2, $3, $4, $5, $6);
