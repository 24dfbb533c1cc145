-- What comes from event sources: taken once, or put aside.

-- name: wait_briefly
-- For the rest of the transaction: one key that somebody holds must not keep a whole batch waiting.
select set_config('lock_timeout', $1, true);

-- name: take_events
-- The events that have not taken effect on their jobs before. One that another process is at is waited for.
insert into horai.source_event (source, job_id, event_id, occurred_at, version)
select $1, event.job_id, event.id, event.occurred_at, event.version
from unnest($2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[]) as event(job_id, id, occurred_at, version)
order by event.job_id, event.id
on conflict (job_id, source, event_id) do nothing
returning job_id, event_id;

-- name: bind_events
-- What became of the events that this transaction has taken. They are dated behind what they made, and what they were ignored for.
update horai.source_event taken set decision = told.decision, instance_id = told.instance_id, at = clock_timestamp()
from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[]) as told(job_id, event_id, decision, instance_id)
where taken.source = $1 and taken.job_id = told.job_id and taken.event_id = told.event_id;

-- name: park_events
-- A message that comes again after it was parked changes nothing.
insert into horai.parked_event (tenant_id, source, place, subject, headers, body, size, reason)
select $1, $2, bad.place, bad.subject, bad.headers, bad.body, bad.size, bad.reason
from unnest($3::text[], $4::text[], $5::json[], $6::bytea[], $7::bigint[], $8::text[]) as bad(place, subject, headers, body, size, reason)
order by bad.place
on conflict (tenant_id, source, place) do nothing;

-- name: parked_events
-- A page, oldest first, from behind $2.
select id, source, place, subject, headers, body, size, reason, at from horai.parked_event
where tenant_id = $1 and id > $2 and ($3::text is null or source = $3) order by id limit $4;

-- name: parked_event
select id, source, place, subject, headers, body, size, reason, at from horai.parked_event where tenant_id = $1 and id = $2;

-- name: drop_parked
delete from horai.parked_event where tenant_id = $1 and id = any ($2::bigint[])
returning id, source, place, subject, headers, body, size, reason, at;

-- name: forget_events
-- A batch of the events that nobody will repeat any more.
delete from horai.source_event where ctid = any (array(
    select ctid from horai.source_event where at < clock_timestamp() - $1::interval order by at limit $2));

