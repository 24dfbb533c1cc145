-- Reports of drills (docs/guides/high-availability.md): what failed, how long the recovery took, and which promises were kept.

-- digest: SHA-256 of the report, so that a report that is filed twice is one row. rto and rpo: in seconds. The newest 1,000 are kept.
create table horai.drill_report (
    id bigint generated always as identity primary key,
    digest bytea not null unique,
    kind text not null check (kind in ('node', 'primary', 'standby', 'zone')),
    cluster text,
    failed_at timestamptz not null,
    rto double precision not null,
    rpo double precision not null,
    kept boolean not null,
    filed_at timestamptz not null default clock_timestamp(),
    filed_by text not null,
    report json not null
);
revoke all on horai.drill_report from public;
