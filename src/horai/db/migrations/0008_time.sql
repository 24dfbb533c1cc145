-- Jobs with a beginning and an end, a jitter, and a word on overlap; late slots that are made bit by bit.

-- overlap: 0 allow, 1 skip, 2 queue, 3 replace. jitter_ms: how far its slots are spread. after_finish: its next slot comes
-- this long after the last one ended, and it follows no schedule. missed_from: while it is paused, the first instant whose slot
-- its schedule did not make for it.
alter table horai.job
    add column overlap smallint not null default 0 check (overlap between 0 and 3),
    add column jitter_ms integer not null default 0 check (jitter_ms between 0 and 86400000),
    add column start_at timestamptz,
    add column end_at timestamptz,
    add column after_finish interval,
    add column missed_from timestamptz;

-- The trigger walks over it by id; a forecast counts by it without looking at the rows.
drop index horai.job_schedule;
create index job_schedule on horai.job (schedule_id, id) include (tenant_id, jitter_ms)
    where schedule_id is not null and status = 0 and deleted_at is null;
create index job_bounded on horai.job (schedule_id, id) include (tenant_id, jitter_ms, start_at, end_at)
    where (start_at is not null or end_at is not null) and schedule_id is not null and status = 0 and deleted_at is null;
create index job_after_finish on horai.job (tenant_id) where after_finish is not null and status = 0 and deleted_at is null;
create index job_gated on horai.job (id) where (overlap <> 0 or after_finish is not null) and deleted_at is null;

-- Its mark: every slot until the instant passed is done, and on the clock of its zone every one until wall. tzdata: the
-- version of the zone rules by which both and fire_time were computed. Under others it goes on behind its mark.
alter table horai.schedule
    add column passed timestamptz,
    add column wall timestamp,
    add column tzdata text;

-- Late slots of a job that are still to be made, from next_time until until_time: after a downtime of the nodes, or a pause
-- of the job. Each slot of a job is either here or before the cursor of its schedule, never both.
create table horai.catchup (
    id bigint generated always as identity primary key,
    job_id bigint not null,
    schedule_id bigint not null references horai.schedule,
    next_time timestamptz not null,
    until_time timestamptz not null,
    at timestamptz not null default clock_timestamp()
);
create index skip_of_all on horai.skip (schedule_id, from_time) where job_id is null;
create index catchup_job on horai.catchup (job_id);

-- How far behind its slots a job runs; the same arithmetic as in core/spread.py, where the reason is told.
create function horai.spread(job_id bigint, jitter_ms integer) returns interval
language sql immutable parallel safe set search_path = pg_catalog as $$
    select (job_id % 2147483648 * 1327217885 % 2147483648 * jitter_ms / 2147483648) * interval '1 millisecond'
$$;
