-- Progress notes of attempts.

-- name: insert_notes
-- A note that is written again after a lost answer is stored once.
insert into horai.note (instance_id, fence, n, at, node, attempt, progress, message)
select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::bigint[], $6::integer[], $7::double precision[], $8::text[])
on conflict do nothing;

-- name: notes_of
-- Returns the last $2 notes of an instance, newest first.
select instance_id, fence, n, at, node, attempt, progress, message
from horai.note where instance_id = $1 order by fence desc, n desc limit $2;
