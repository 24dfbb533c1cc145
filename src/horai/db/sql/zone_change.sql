-- Schedules whose coming slot was computed by other zone rules. A slot that has been begun is finished as it is, so its
-- schedule is left alone, and stays marked with the rules it was computed by.

-- name: stale_schedules
-- Those behind $1 of these shards. Asked when a node takes shards, and until none is left.
select id from horai.schedule
where id > $1 and fire_time is not null and last_job = 0 and tzdata is distinct from $2 and id % $4::bigint = any ($3::bigint[])
order by id limit $5;

-- name: lock_stale_schedules
-- Looked at again under the lock: another node may have been first. What somebody holds is left to the next look.
select id, spec, fire_time, last_job, passed, wall from horai.schedule
where id = any ($1::bigint[]) and fire_time is not null and last_job = 0 and tzdata is distinct from $2
order by id for update skip locked;

-- name: rezone_schedules
-- The mark stays: what was done when it was set is all that has been done.
update horai.schedule schedule
set fire_time = step.next_fire, tzdata = $5
from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::timestamptz[]) as step(id, fire_time, last_job, next_fire)
where schedule.id = step.id and schedule.fire_time = step.fire_time and schedule.last_job = step.last_job
returning schedule.id;
