-- Calendars, and the jobs that follow them. A change locks the calendar first, then its jobs.

-- name: lock_calendar_names
-- tenant: none
-- Locked until commit: a tenant's calendars are counted and added by one transaction at a time.
select pg_advisory_xact_lock(1215263333, $1);

-- name: count_calendars
-- tenant: $1
select count(*) from horai.calendar where tenant_id = $1;

-- name: lock_calendar
-- tenant: $1
select name, version, days, created_at, updated_at from horai.calendar where tenant_id = $1 and name = $2 for update;

-- name: insert_calendar
-- tenant: $1
insert into horai.calendar (tenant_id, name, days) values ($1, $2, $3)
returning name, version, days, created_at, updated_at;

-- name: update_calendar
-- tenant: $1
-- The caller has locked the row and compared its version.
update horai.calendar set days = $3, version = version + 1, updated_at = clock_timestamp() where tenant_id = $1 and name = $2
returning name, version, days, created_at, updated_at;

-- name: delete_calendar
-- tenant: $1
delete from horai.calendar where tenant_id = $1 and name = $2;

-- name: list_calendars
-- tenant: $1
select name, version, days, created_at, updated_at from horai.calendar where tenant_id = $1 and name > $2 order by name limit $3;

-- name: users_of_calendar
-- tenant: $1
-- Returns the names of $3 jobs that follow the calendar, and how many there are. A tick job is not named: its refresh job is.
select count(*) as count, (array_agg(job.name order by job.id))[1:$3] as names from horai.job
where tenant_id = $1 and deleted_at is null and definition -> 'calendar' ->> 'name' = $2 and ticks_for is null;

-- name: rules_of_calendar
-- tenant: $1
select name from horai.alert_rule where tenant_id = $1 and definition ->> 'calendar' = $2 order by name limit $3;

-- name: lock_followers
-- tenant: $1
-- Locks the jobs that follow the calendar, in id order, and returns them by schedule. Jobs of one schedule have the same rhythm,
-- so one definition stands for all of them; a job without a schedule stands for itself.
with held as materialized (
    select id, schedule_id, definition from horai.job
    where tenant_id = $1 and deleted_at is null and definition -> 'calendar' ->> 'name' = $2
    order by id for update
)
select schedule_id, array_agg(id order by id) as ids, (array_agg(definition order by id))[1] as definition
from held group by schedule_id, case when schedule_id is null then id end order by min(id);

-- name: move_followers
-- tenant: $1
-- Gives jobs that the caller has locked the schedule of the changed calendar. Its slots count from $4 on, as after a change of a cron.
update horai.job set schedule_id = $3, active_from = $4 where tenant_id = $1 and id = any ($2::bigint[]);

-- name: give_up_catchups_of
-- tenant: $1
-- Deletes the catch-ups of these jobs and records their slots as skipped.
with gone as (
    delete from horai.catchup where tenant_id = $1 and job_id = any ($2::bigint[]) returning *
)
insert into horai.skip (tenant_id, schedule_id, job_id, from_time, to_time, reason)
select tenant_id, schedule_id, job_id, next_time, until_time, 'JOB_CHANGED' from gone;
