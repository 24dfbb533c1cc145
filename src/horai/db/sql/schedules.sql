-- Schedules and the making of their slots. The cursor is the guard: it moves in the transaction that makes the slot.

-- name: share_schedule
-- Held by whoever adds, changes or resumes a job of this schedule: the trigger's FOR UPDATE waits for it, and it for the trigger.
-- Not one that sleeps: two that share it and then both wake it would wait for each other.
select id, fire_time from horai.schedule where identity = $1 and fire_time is not null for share;

-- name: wake_schedule
-- Makes the schedule, or wakes a sleeping one.
insert into horai.schedule (identity, spec, fire_time) values ($1, $2, $3)
on conflict (identity) do update set fire_time = coalesce(horai.schedule.fire_time, excluded.fire_time)
returning id, fire_time;

-- name: coming_schedules
-- What the wheel is filled with: the fires until $1 of the schedules of these shards.
select id, fire_time from horai.schedule where fire_time <= $1 and id % $4::bigint = any ($3::bigint[]) order by fire_time limit $2;

-- name: lock_schedules
-- Whether a slot is due is the database's to say. A schedule that somebody else holds is left to the next look.
select id, spec, fire_time, last_job, fire_time <= clock_timestamp() as is_due, clock_timestamp() as now from horai.schedule
where id = any ($1::bigint[]) order by id for update skip locked;

-- name: make_slots
-- moves: -> INIT
-- One slot per schedule for the next $4 of its jobs; a slot that exists is left alone.
with fire as (
    select * from unnest($1::bigint[], $2::timestamptz[], $3::bigint[]) as f(schedule_id, fire_time, last_job)
), chosen as materialized (
    select fire.schedule_id, fire.fire_time, job.id as job_id, job.tenant_id, job.lane_id, job.payload,
        job.active_from < fire.fire_time as is_active, nextval('horai.instance_id') as id
    from fire cross join lateral (
        select * from horai.job
        where job.schedule_id = fire.schedule_id and job.id > fire.last_job and job.status = 0 and job.deleted_at is null
        order by job.id limit $4
    ) job
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
    select id, job_id, tenant_id, lane_id, id % $5, fire_time, fire_time, fire_time, greatest(fire_time, clock_timestamp()), 0, payload
    from chosen where is_active
    on conflict (job_id, fire_time, slot) do nothing
    returning job_id, lane, due
)
select chosen.schedule_id, count(*) as jobs, max(chosen.job_id) as last_job, count(made.job_id) as made,
    coalesce(array_agg(distinct made.lane) filter (where made.lane is not null), '{}') as lanes, min(made.due) as due
from chosen left join made on made.job_id = chosen.job_id
group by chosen.schedule_id;

-- name: advance_schedules
update horai.schedule schedule
set fire_time = step.next_fire, last_job = step.next_job
from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::timestamptz[], $5::bigint[]) as step(id, fire_time, last_job, next_fire, next_job)
where schedule.id = step.id and schedule.fire_time = step.fire_time and schedule.last_job = step.last_job
returning schedule.id;

-- name: insert_skip
insert into horai.skip (schedule_id, job_id, from_time, to_time, slots, reason) values ($1, $2, $3, $4, $5, $6);
