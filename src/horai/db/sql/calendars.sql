-- Named calendars, as jobs and alert rules read them.

-- name: read_calendar
-- tenant: $1
select name, version, days, created_at, updated_at from horai.calendar where tenant_id = $1 and name = $2;

-- name: read_calendars
-- tenant: $1
select name, days from horai.calendar where tenant_id = $1 and name = any ($2::text[]);

-- name: share_calendar
-- tenant: $1
-- Locked until commit by a job that begins to follow the calendar: a change of the calendar comes before it, or sees the job.
select name, version, days, created_at, updated_at from horai.calendar where tenant_id = $1 and name = $2 for share;
