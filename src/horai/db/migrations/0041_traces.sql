-- Traces (docs/guides/traces.md): the ids of traces follow from the cluster and the instance.

-- One row. Instances of different clusters have the same ids: this one keeps their traces apart in one collector.
create table horai.cluster (
    id uuid primary key default gen_random_uuid(),
    is_only boolean not null default true unique check (is_only)
);
insert into horai.cluster default values;
revoke all on horai.cluster from public;
