-- What event sources have told: which events have taken effect, and those that nobody can read.

-- An event takes effect once for each job that follows it: its id is taken in the transaction of its change. source: the
-- adapter and its stream. decision and instance_id: what became of it. Forgotten after a week.
create table horai.source_event (
    job_id bigint not null,
    source text collate "C" not null,
    event_id text collate "C" not null,
    at timestamptz not null default clock_timestamp(),
    occurred_at timestamptz,
    decision text,
    instance_id bigint,
    version bigint,
    primary key (job_id, source, event_id)
);
create index source_event_at on horai.source_event (at);
create index source_event_ignored on horai.source_event (instance_id) where decision = 'IGNORED';

-- A message that was put aside so that the others can go on. place: where it stands in its source, the same whenever it is
-- delivered. body: its first 64 kB; size: how much it was.
create table horai.parked_event (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    source text collate "C" not null,
    place text collate "C" not null,
    subject text not null,
    headers json not null,
    body bytea not null check (octet_length(body) <= 65536),
    size bigint not null,
    reason text not null,
    at timestamptz not null default clock_timestamp(),
    unique (tenant_id, source, place)
);
