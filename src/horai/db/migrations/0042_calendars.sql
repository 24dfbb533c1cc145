-- Named calendars (docs/guides/calendars.md): holidays, make-up working days, weekend and business hours, shared by jobs.

create table horai.calendar (
    id bigint generated always as identity unique,
    tenant_id integer not null references horai.tenant,
    name text not null,
    -- Grows with each change. `days` are dates and hours without a zone: a job's zone says when they are.
    version bigint not null default 1,
    days json not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, name)
);
revoke all on horai.calendar from public;

-- The jobs that follow a named calendar: a change of it gives them another schedule, and one in use is not deleted.
create index job_named_calendar on horai.job (tenant_id, (definition -> 'calendar' ->> 'name'))
where deleted_at is null and definition -> 'calendar' ->> 'name' is not null;
