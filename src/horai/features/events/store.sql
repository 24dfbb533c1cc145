-- Events of event sources, each taken once, and parked messages.

-- name: wait_briefly
-- tenant: none
-- For the rest of the transaction: one key that another transaction holds must not delay a whole batch.
select set_config('lock_timeout', $1, true);

-- name: take_events
-- tenant: by job
-- Returns the events that have not taken effect on their jobs before. If another transaction is taking an event, waits for it.
insert into horai.source_event (tenant_id, source, job_id, event_id, occurred_at, version)
select job.tenant_id, $1, job.id, event.id, event.occurred_at, event.version
from unnest($2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[]) as event(job_id, id, occurred_at, version)
join horai.job on job.id = event.job_id
order by event.job_id, event.id
on conflict (job_id, source, event_id) do nothing
returning job_id, event_id;

-- name: bind_events
-- tenant: by job
-- The results of the events that this transaction has taken. Their time is later than that of the instances they created
-- or were ignored for.
update horai.source_event taken set decision = told.decision, instance_id = told.instance_id, at = clock_timestamp()
from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[]) as told(job_id, event_id, decision, instance_id)
where taken.source = $1 and taken.job_id = told.job_id and taken.event_id = told.event_id;

-- name: park_events
-- tenant: $1
-- A message that is delivered again after it was parked changes nothing.
-- $9: the bodies are sealed.
insert into horai.parked_event (tenant_id, source, place, subject, headers, body, size, reason, sealed)
select $1, $2, bad.place, bad.subject, bad.headers, bad.body, bad.size, bad.reason, $9
from unnest($3::text[], $4::text[], $5::json[], $6::bytea[], $7::bigint[], $8::text[]) as bad(place, subject, headers, body, size, reason)
order by bad.place
on conflict (tenant_id, source, place) do nothing;

-- name: parked_events
-- tenant: $1
-- A page, oldest first, after the id $2.
select id, source, place, subject, headers, body, size, reason, at, sealed from horai.parked_event
where tenant_id = $1 and id > $2 and ($3::text is null or source = $3) order by id limit $4;

-- name: parked_event
-- tenant: $1
select id, source, place, subject, headers, body, size, reason, at, sealed from horai.parked_event where tenant_id = $1 and id = $2;

-- name: drop_parked
-- tenant: $1
delete from horai.parked_event where tenant_id = $1 and id = any ($2::bigint[])
returning id, source, place, subject, headers, body, size, reason, at, sealed;

-- name: forget_events
-- tenant: $3
-- A batch of old events of the tenant, which sources no longer repeat.
delete from horai.source_event where ctid = any (array(
    select ctid from horai.source_event where tenant_id = $3 and at < clock_timestamp() - $1::interval order by at limit $2));

