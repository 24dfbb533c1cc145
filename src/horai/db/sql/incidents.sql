-- Incidents and their timelines.

-- name: open_incident
-- tenant: platform
-- No row: an incident of this cause is open already.
insert into horai.incident (severity, cause, title, opened_by) values ($1, $2, $3, $4)
on conflict (cause) where closed_at is null and cause <> 'BY_HAND' do nothing
returning id, severity, cause, title, opened_at, opened_by, closed_at, closed_by;

-- name: open_incident_of
-- tenant: platform
select id from horai.incident where cause = $1 and closed_at is null for update;

-- name: lock_incident
-- tenant: platform
select id, severity, cause, title, opened_at, opened_by, closed_at, closed_by from horai.incident where id = $1 for update;

-- name: find_incident
-- tenant: platform
select id, severity, cause, title, opened_at, opened_by, closed_at, closed_by from horai.incident where id = $1;

-- name: list_incidents
-- tenant: platform
-- $3: only those that are open (true) or closed (false); null for all.
select id, severity, cause, title, opened_at, opened_by, closed_at, closed_by from horai.incident
where ($1::bigint is null or id < $1) and ($3::boolean is null or (closed_at is null) = $3) order by id desc limit $2;

-- name: close_incident
-- tenant: platform
update horai.incident set closed_at = clock_timestamp(), closed_by = $2 where id = $1 and closed_at is null
returning id, severity, cause, title, opened_at, opened_by, closed_at, closed_by;

-- name: insert_incident_entry
-- tenant: platform
insert into horai.incident_entry (incident_id, kind, actor, note, data) values ($1, $2, $3, $4, $5);

-- name: incident_entries
-- tenant: platform
select at, kind, actor, note, data from horai.incident_entry where incident_id = $1 order by id limit $2;

-- name: record_outage
-- tenant: platform
-- Records the time in which no node was live as an incident that is over, once. $1: the longest gap that is no incident. Nodes that
-- stopped in order leave no gap: the last one before must have missed its lease. Reads only the newest 1,000 nodes.
with known as materialized (
    select * from horai.node order by incarnation desc limit 1000
), back as (
    select min(started_at) as at from known
    where fenced_at is null and stopped_at is null and lease_until > clock_timestamp()
), gone as (
    select known.lease_until as at from known, back
    where known.started_at < back.at and known.lease_until < back.at order by known.lease_until desc limit 1
), outage as (
    select gone.at as since, back.at as until from gone, back
    where back.at - gone.at > $1::interval
        and not exists (select from known where known.stopped_at is not null and known.lease_until >= gone.at)
        and not exists (select from horai.incident where cause = 'NO_NODE' and opened_at = gone.at)
), made as (
    insert into horai.incident (severity, cause, title, opened_at, opened_by, closed_at, closed_by)
    select 'P1', 'NO_NODE', $2, since, 'horai', until, 'horai' from outage
    returning id, opened_at, closed_at
), told as (
    insert into horai.incident_entry (incident_id, at, kind, actor)
    select id, opened_at, 'OPENED', 'horai' from made union all select id, closed_at, 'CLOSED', 'horai' from made
)
select id, opened_at, closed_at from made;
