-- Recovery after an incident (docs/runbook.md): each step is done once for an incident, and the counts are kept.

-- begun_at: when a request began or took over the work; another one may take over after a minute. The counts are null until their step
-- is done. replayed_of and moved_of: the counts of each tenant, for the event that it gets.
create table horai.recovery (
    incident_id bigint primary key references horai.incident,
    actor text not null,
    started_at timestamptz not null default clock_timestamp(),
    begun_at timestamptz not null default clock_timestamp(),
    resumed integer,
    replayed bigint,
    dlq_moved integer not null default 0,
    replayed_of jsonb not null default '{}',
    moved_of jsonb not null default '{}',
    completed_at timestamptz
);
revoke all on horai.recovery from public;

alter table horai.incident_entry drop constraint incident_entry_kind_check;
alter table horai.incident_entry add constraint incident_entry_kind_check
    check (kind in ('OPENED', 'CHANGED', 'NOTE', 'RECOVERED', 'CLOSED'));
