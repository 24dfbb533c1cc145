-- Progress notes of attempts.

-- name: insert_notes
-- tenant: platform
-- A note that is written again after a lost answer is stored once.
insert into horai.note (instance_id, fence, n, at, node, attempt, progress, message, tenant_id)
select note.instance_id, note.fence, note.n, note.at, note.node, note.attempt, note.progress, note.message, tenant.id
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::bigint[], $6::integer[], $7::double precision[], $8::text[], $9::text[])
    as note(instance_id, fence, n, at, node, attempt, progress, message, tenant)
join horai.tenant on tenant.name = note.tenant
on conflict do nothing;

-- name: notes_of
-- tenant: by instance
-- Returns the last $2 notes of an instance, newest first.
select instance_id, fence, n, at, node, attempt, progress, message,
    (select tenant.name from horai.tenant where tenant.id = note.tenant_id) as tenant
from horai.note where instance_id = $1 order by fence desc, n desc limit $2;
