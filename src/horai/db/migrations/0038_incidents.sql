-- Incidents (docs/guides/incidents.md): what went wrong in the cluster, since when, and what was done about it.

-- severity: P1 no node was live; P2 a mode of the governor is in force, or an operator opened it. cause: the mode, NO_NODE, or BY_HAND.
create table horai.incident (
    id bigint generated always as identity primary key,
    severity text not null check (severity in ('P1', 'P2')),
    cause text not null,
    title text not null,
    opened_at timestamptz not null default clock_timestamp(),
    opened_by text not null,
    closed_at timestamptz,
    closed_by text,
    check ((closed_at is null) = (closed_by is null))
);
create unique index incident_open_once on horai.incident (cause) where closed_at is null and cause <> 'BY_HAND';

-- The timeline of an incident. kind: OPENED, CHANGED (another level of its mode), NOTE, CLOSED.
create table horai.incident_entry (
    id bigint generated always as identity primary key,
    incident_id bigint not null references horai.incident,
    at timestamptz not null default clock_timestamp(),
    kind text not null check (kind in ('OPENED', 'CHANGED', 'NOTE', 'CLOSED')),
    actor text not null,
    note text,
    data json
);
create index incident_entry_of on horai.incident_entry (incident_id, id);
revoke all on horai.incident, horai.incident_entry from public;
