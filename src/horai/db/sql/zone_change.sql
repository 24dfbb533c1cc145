-- Schedules whose next slot was computed with other zone rules. A slot that the trigger has started is finished unchanged, so
-- its schedule is skipped and keeps the version of the rules that it was computed with.

-- name: stale_schedules
-- tenant: platform
-- Reads the next $5 schedules above the id $1: the last id of them (null: no schedule is left), and those that are stale and of these shards.
-- Called when a node takes shards, until none is left. One call reads a portion, so that fires do not wait for the whole table.
with portion as materialized (
    select id, fire_time is not null and last_job = 0 and tzdata is distinct from $2 and id % $4::bigint = any ($3::bigint[]) as is_stale
    from horai.schedule where id > $1 order by id limit $5
)
select case when count(*) = $5 then max(id) end as last_id, coalesce(array_agg(id order by id) filter (where is_stale), '{}') as stale from portion;

-- name: lock_stale_schedules
-- tenant: platform
-- Checks again under the lock: another node may have been first. Skips schedules that another transaction has locked; the next
-- call finds them.
select id, spec, fire_time, last_job, passed, wall from horai.schedule
where id = any ($1::bigint[]) and fire_time is not null and last_job = 0 and tzdata is distinct from $2
order by id for update skip locked;

-- name: rezone_schedules
-- tenant: platform
-- The mark does not change: nothing was done since it was set.
update horai.schedule schedule
set fire_time = step.next_fire, tzdata = $5
from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::timestamptz[]) as step(id, fire_time, last_job, next_fire)
where schedule.id = step.id and schedule.fire_time = step.fire_time and schedule.last_job = step.last_job
returning schedule.id;
