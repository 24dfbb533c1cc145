-- The steps of a recovery, and what each has done.

-- name: begin_recovery
-- tenant: platform
-- Begins the recovery of an incident, or takes over one that no request has worked on for $3. No row: another request works on it, or it
-- is completed.
insert into horai.recovery (incident_id, actor) values ($1, $2)
on conflict (incident_id) do update set begun_at = clock_timestamp()
    where recovery.completed_at is null and recovery.begun_at < clock_timestamp() - $3::interval
returning incident_id, actor, started_at, resumed, replayed, dlq_moved, completed_at;

-- name: find_recovery
-- tenant: platform
select incident_id, actor, started_at, resumed, replayed, dlq_moved, completed_at from horai.recovery where incident_id = $1;

-- name: resume_shards
-- tenant: platform
-- Frees the shards of nodes that are fenced, stopped or without a valid lease, and makes all nodes take their share of the free ones.
-- Returns how many shards had no live owner.
with gone as materialized (
    select lease.duty, lease.shard from horai.shard_lease lease
    where not exists (
        select from horai.node where node.incarnation = lease.node and node.fenced_at is null and node.stopped_at is null
            and node.lease_until > clock_timestamp() and lease.lease_until > clock_timestamp())
    order by lease.duty, lease.shard for update of lease skip locked
), freed as (
    update horai.shard_lease lease set node = null, lease_until = null
    from gone where lease.duty = gone.duty and lease.shard = gone.shard
), told as (
    select pg_notify('horai_wake', 'n')
)
select count(gone.shard)::integer as resumed from told left join gone on true;

-- name: rewind_sinks
-- tenant: platform
-- Moves every sink that is not paused back to the first event since $1. Returns the events that the sinks of each tenant get again.
with recent as materialized (
    select tenant_id, position, type from horai.outbox where recorded_at >= $1 offset 0
), again as materialized (
    select sink.id, sink.tenant_id, min(recent.position) as first,
        count(*) filter (where sink.types is null or recent.type = any (sink.types)) as events
    from horai.sink join recent on recent.tenant_id = sink.tenant_id and recent.position <= sink.position
    where sink.status <> 'PAUSED' group by sink.id
), moved as (
    update horai.sink set position = again.first - 1, next_try = null, updated_at = clock_timestamp()
    from again where sink.id = again.id and sink.position >= again.first
)
select tenant_id, sum(events)::bigint as events from again group by tenant_id;

-- name: tenants_with_letters
-- tenant: platform
-- The tenants with open dead letters of a tag, those with the oldest letter first.
select tenant.id, tenant.name from horai.tenant
cross join lateral (
    select created_at from horai.dead_letter letter
    where letter.tenant_id = tenant.id and letter.replay_status = 'NEW' and letter.tags @> array[$1::text]
    order by created_at limit 1
) oldest
order by oldest.created_at;

-- name: note_resumed
-- tenant: platform
update horai.recovery set resumed = $2, begun_at = clock_timestamp() where incident_id = $1 and completed_at is null and resumed is null;

-- name: note_replayed
-- tenant: platform
-- $2: the events by tenant.
update horai.recovery set replayed = (select coalesce(sum(value::bigint), 0) from jsonb_each_text($2::jsonb)), replayed_of = $2::jsonb,
    begun_at = clock_timestamp()
where incident_id = $1 and completed_at is null and replayed is null;

-- name: note_moved
-- tenant: platform
-- Adds the dead letters of the tenant $2.
update horai.recovery set dlq_moved = dlq_moved + $3::integer, begun_at = clock_timestamp(),
    moved_of = moved_of || jsonb_build_object($2::integer, coalesce((moved_of ->> $2::integer::text)::integer, 0) + $3::integer)
where incident_id = $1 and completed_at is null;

-- name: complete_recovery
-- tenant: platform
-- Tells every tenant with a sink what was done for it.
with done as (
    update horai.recovery set completed_at = clock_timestamp() where incident_id = $1 and completed_at is null
    returning *
), told as (
    insert into horai.event (tenant_id, kind, data)
    select receiver.tenant_id, 'RECOVERY_COMPLETED', json_build_object('incidentId', done.incident_id::text, 'resumed', done.resumed,
        'replayed', coalesce((done.replayed_of ->> receiver.tenant_id::text)::bigint, 0),
        'dlqMoved', coalesce((done.moved_of ->> receiver.tenant_id::text)::integer, 0))
    from done cross join (select distinct tenant_id from horai.sink) receiver
)
select incident_id, actor, started_at, resumed, replayed, dlq_moved, completed_at from done;
