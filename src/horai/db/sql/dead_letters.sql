-- Dead letters: the queries of users, and the writes of a replay or a discard. The filter is the same everywhere: $1 tenant,
-- $2 job, $3 tag, $4 error code, $5 fingerprint, $6 status, $7 instance, $8 from, $9 until; null means no condition. The last
-- parameter of a bulk statement has the ids of the letters that are meant.

-- name: letter_by_id
-- tenant: $1
select letter.*, job.name as job, job.encrypted, job.definition ->> 'timezone' as timezone, job.deleted_at is not null as is_job_deleted, past.key
from horai.dead_letter letter join horai.job on job.id = letter.job_id
left join lateral (select key from horai.instance_history where id = letter.instance_id limit 1) past on true
where letter.tenant_id = $1 and letter.id = $2;

-- name: list_letters
-- tenant: $1
-- reversed: list_letters_upwards
-- A page, newest first, that starts before ($10, $11).
with page as materialized (
    select * from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7)
        and ($8::timestamptz is null or created_at >= $8) and ($9::timestamptz is null or created_at < $9) and (created_at, id) < ($10, $11)
    order by created_at desc, id desc limit $12
)
select page.*, job.name as job, job.encrypted, job.definition ->> 'timezone' as timezone, job.deleted_at is not null as is_job_deleted, past.key
from page join horai.job on job.id = page.job_id
left join lateral (select key from horai.instance_history where id = page.instance_id limit 1) past on true
order by page.created_at desc, page.id desc;

-- name: count_letters
-- tenant: $1
-- The letters that match among the newest $10, and the number of these. No index finds settled letters by their status: they are
-- looked for in the rows that are read.
select count(*) filter (where $6::text is null or replay_status = $6) as matched, count(*) as looked_at
from (
    select replay_status from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is distinct from 'NEW' or replay_status = 'NEW') and ($7::bigint is null or instance_id = $7)
        and ($8::timestamptz is null or created_at >= $8) and ($9::timestamptz is null or created_at < $9)
    order by created_at desc, id desc limit $10::bigint
) newest;

-- name: group_letters
-- tenant: $1
-- Faults by frequency, among the newest $10 letters that match; each row has the number of letters that were read. hours: the
-- number of letters of the last day by how many hours ago they were created.
with newest as materialized (
    select * from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7)
        and ($8::timestamptz is null or created_at >= $8) and ($9::timestamptz is null or created_at < $9)
    order by created_at desc, id desc limit $10
), counted as (
    select fingerprint, job_id, error_code, count(*) as letters, min(created_at) as first_at, max(created_at) as last_at,
        (array_agg(error_msg order by created_at desc, id desc))[1] as error_msg, (array_agg(id order by created_at desc, id desc))[1] as last_id
    from newest group by fingerprint, job_id, error_code
), hourly as (
    select fingerprint, job_id, error_code, json_object_agg(ago, letters) as hours
    from (
        select fingerprint, job_id, error_code, floor(extract(epoch from statement_timestamp() - created_at) / 3600)::int as ago, count(*) as letters
        from newest where created_at > statement_timestamp() - interval '24 hours' group by 1, 2, 3, 4
    ) hour
    group by fingerprint, job_id, error_code
)
select counted.*, job.name as job, job.encrypted as is_encrypted, (select count(*) from newest) as looked_at,
    (select hours from hourly where (hourly.job_id, hourly.error_code) = (counted.job_id, counted.error_code)
        and hourly.fingerprint is not distinct from counted.fingerprint) as hours
from counted join horai.job on job.id = counted.job_id
order by letters desc, last_at desc limit $11;

-- name: count_replayable
-- tenant: $1
-- The number of letters that a replay would take, counted up to $10.
select count(*) as letters from (
    select from horai.dead_letter letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7) and replay_status = 'NEW'
        and ($8::timestamptz is null or created_at >= $8) and created_at < $9 and ($11::bigint[] is null or id = any ($11))
        and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
        and exists (select from horai.instance_history past where past.id = letter.instance_id)
    limit $10
) counted;

-- name: lock_replayable
-- tenant: $1
-- Locks the oldest $12 letters after ($10, $11) that a replay may take and that no other transaction has locked: a concurrent
-- replay gets others. A letter whose job is deleted, or whose instance is no longer kept, cannot be replayed.
select id, instance_id, job_id, created_at from horai.dead_letter letter
where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
    and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7) and replay_status = 'NEW'
    and ($8::timestamptz is null or created_at >= $8) and created_at < $9 and ($13::bigint[] is null or id = any ($13)) and (created_at, id) > ($10, $11)
    and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
    and exists (select from horai.instance_history past where past.id = letter.instance_id)
order by created_at, id limit $12 for update of letter skip locked;

-- name: count_open_of
-- tenant: by instance
-- The number of the dead instances $1 that a replay would take.
select count(*) from horai.dead_letter letter
where instance_id = any ($1::bigint[]) and replay_status = 'NEW'
    and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
    and exists (select from horai.instance_history past where past.id = letter.instance_id);

-- name: lock_open_of
-- tenant: by instance
-- Locks the open letters of the dead instances $1; waits as long as lock_timeout allows. Ordered by id, like all bulk locks.
select id, instance_id, job_id, created_at from horai.dead_letter letter
where instance_id = any ($1::bigint[]) and replay_status = 'NEW'
    and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
    and exists (select from horai.instance_history past where past.id = letter.instance_id)
order by id for update of letter;

-- name: lock_letter
-- tenant: $1
-- Locks one letter; waits as long as lock_timeout allows.
select id, instance_id, job_id, created_at, replay_status from horai.dead_letter where tenant_id = $1 and id = $2 for update;

-- name: share_lanes
-- tenant: by job
-- The lanes of new instances of these jobs; no row for a deleted job. The lock orders this transaction against a pause.
select id, case when status = 0 then lane_id else 0 end as lane from horai.job
where id = any ($1::bigint[]) and deleted_at is null order by id for key share;

-- name: insert_replays
-- tenant: by instance
-- moves: -> INIT
-- Inserts a new instance of each dead one $1: its job, key, payload, version and fire time; $2 the start times, $3 and $4 the
-- lanes of their jobs. The fence continues. No row is returned for a key that has a live instance. Ordered by key, like puts,
-- so that two transactions do not deadlock. The concurrency key is kept, and its lane is marked; the own lane of the call is kept, and the
-- expiry is not: the replay was asked for later.
with marked as materialized (
    select horai.mark_keyed(array(
        select distinct coalesce(horai.own_lane_in(past.own_lane, target.lane), target.lane) from horai.instance_history past join unnest($3::bigint[], $4::integer[]) as target(job_id, lane)
            on target.job_id = past.job_id
        where past.id = any ($1::bigint[]) and past.concurrency_key is not null and target.lane <> 0), true)
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, key, fire_time, execute_time, born_for, due, slot, payload, version, fence,
        replay_of, concurrency_key, own_lane)
    select fresh.new_id, fresh.job_id, fresh.tenant_id, fresh.to_lane, fresh.new_id % $5, fresh.key, fresh.fire_time, fresh.at, fresh.fire_time,
        greatest(fresh.at, clock_timestamp()), -fresh.new_id, fresh.payload, fresh.version, fresh.fence, fresh.id,
        fresh.concurrency_key, fresh.own_lane
    from marked cross join (
        select nextval('horai.instance_id') as new_id, dead.*
        from (
            select past.*, wish.at, coalesce(horai.own_lane_in(past.own_lane, target.lane), target.lane) as to_lane
            from unnest($1::bigint[], $2::timestamptz[]) as wish(instance_id, at)
            join horai.instance_history past on past.id = wish.instance_id
            join unnest($3::bigint[], $4::integer[]) as target(job_id, lane) on target.job_id = past.job_id
            order by past.job_id, past.key, wish.at
        ) dead
    ) fresh
    on conflict (job_id, key) where key is not null do nothing
    returning id, tenant_id, job_id, replay_of, lane, due
), indexed as (
    insert into horai.payload_digest (tenant_id, job_id, instance_id, path, digest)
    select made.tenant_id, made.job_id, made.id, own.path, own.digest
    from made join horai.payload_digest own on own.instance_id = any (array[made.replay_of]) and own.job_id = made.job_id
)
select id, replay_of, lane, due from made;

-- name: pasts_of_replays
-- tenant: by instance
-- The history of the keys that this transaction has just inserted. It runs after the insert statement: once the key is taken,
-- every instance of it that finished before is visible in history.
select live.id, bool_or(past.succeeded and past.finished_at > dead.finished_at) as succeeded, max(past.version) as version, max(past.fence) as fence
from horai.instance_live live
join horai.instance_history dead on dead.id = live.replay_of
cross join lateral (
    select state = 2 as succeeded, version, fence, finished_at from horai.instance_history ended
    where ended.job_id = live.job_id and ended.key = live.key and ended.finished_at >= (select folded_before from horai.history_fold where id = 1)
    union all
    select succeeded, version, fence, finished_at from horai.key_past folded where folded.job_id = live.job_id and folded.key = live.key
) past
where live.id = any ($1::bigint[]) and live.key is not null
group by live.id;

-- name: mark_replayed
-- tenant: by letter
-- Records the new instance in the letter, and an event on the dead instance.
with marked as (
    update horai.dead_letter letter set replay_status = 'REPLAYED', replayed_as = made.id
    from unnest($1::bigint[], $2::bigint[]) as made(letter_id, id)
    where letter.id = made.letter_id and letter.replay_status = 'NEW' returning letter.*
)
insert into horai.event (tenant_id, job_id, instance_id, kind, data)
select tenant_id, job_id, instance_id, 'INSTANCE_REPLAYED', json_build_object('letter', id::text, 'replayedAs', replayed_as::text) from marked;

-- name: mark_superseded
-- tenant: by letter
update horai.dead_letter set replay_status = 'SUPERSEDED' where id = any ($1::bigint[]) and replay_status = 'NEW';

-- name: discard_letter
-- tenant: by letter
-- Discards the letter $1 for the reason $2, so that it is never replayed. Returns no row if it is not NEW.
with marked as (
    update horai.dead_letter set replay_status = 'DISCARDED', reason = $2 where id = $1 and replay_status = 'NEW' returning *
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, kind, data)
    select tenant_id, job_id, instance_id, 'INSTANCE_DISCARDED', json_build_object('letter', id::text, 'reason', reason) from marked
)
select id from marked;

-- name: count_open
-- tenant: $1
-- The number of letters that a discard would take, counted up to $10.
select count(*) as letters from (
    select from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7)
        and replay_status = 'NEW' and ($8::timestamptz is null or created_at >= $8) and created_at < $9 and ($11::bigint[] is null or id = any ($11))
    limit $10
) counted;

-- name: discard_open
-- tenant: $1
-- Discards the oldest $10 open letters that match and are not locked, for the reason $11. Returns their number.
with chosen as (
    select id from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7)
        and replay_status = 'NEW' and ($8::timestamptz is null or created_at >= $8) and created_at < $9 and ($12::bigint[] is null or id = any ($12))
    order by created_at, id limit $10 for update skip locked
), marked as (
    update horai.dead_letter letter set replay_status = 'DISCARDED', reason = $11 from chosen where letter.id = chosen.id returning letter.*
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, kind, data)
    select tenant_id, job_id, instance_id, 'INSTANCE_DISCARDED', json_build_object('letter', id::text, 'reason', reason) from marked
)
select count(*) from marked;

-- name: known_origins
-- tenant: $1
select origin from horai.dead_letter where tenant_id = $1 and origin = any ($2::text[]);

-- name: import_letters
-- tenant: $1
-- moves: -> DEAD
-- Inserts dead instances of another cluster, each with its letter, its last attempt and its event. A letter whose origin is known is left
-- out. The fence continues. The instance ends now, so that its partition exists; the letter keeps its time. Returns the number.
with given as (
    select * from unnest($2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::bigint[],
        $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[])
        as letter(origin, job_id, key, fire_time, execute_time, died_at, version, fence, payload, error_code, error_msg, fingerprint, tags)
), fresh as materialized (
    select nextval('horai.instance_id') as id, job.lane_id, array(select json_array_elements_text(given.tags::json)) as words, given.*
    from given join horai.job on job.id = given.job_id and job.tenant_id = $1 and job.deleted_at is null
), lettered as (
    insert into horai.dead_letter (tenant_id, job_id, instance_id, error_code, error_msg, tags, fingerprint, created_at, origin)
    select $1, job_id, id, error_code, error_msg, words, fingerprint, least(died_at, clock_timestamp()), origin from fresh
    on conflict (tenant_id, origin) where origin is not null do nothing
    returning instance_id
), made as (
    select fresh.*, 1 as events from fresh join lettered on lettered.instance_id = fresh.id
), kept as (
    insert into horai.instance_history (tenant_id, id, job_id, lane, key, fire_time, execute_time, born_for, slot, version, attempt, fence, payload,
        created_at, claimed_at, finished_at, retry_count, error_code, error_msg, events, state)
    select $1, id, job_id, lane_id, key, fire_time, execute_time, fire_time, -id, version, fence::integer, fence, payload::json,
        clock_timestamp(), clock_timestamp(), clock_timestamp(), 1, error_code, error_msg, events, 4 from made
), tried as (
    insert into horai.attempt (tenant_id, instance_id, job_id, attempt, fence, started_at, finished_at, outcome, error_code, error_msg)
    select $1, id, job_id, fence::integer, fence, clock_timestamp(), clock_timestamp(), 'DEAD', error_code, error_msg from made
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select $1, job_id, id, 1, 'INSTANCE_DEAD', json_build_object('idemKey', horai.idem_key(job_id, fire_time, -id), 'attempt', fence,
        'retryCount', 1, 'lostCount', 0, 'errorCode', error_code, 'tags', words, 'origin', origin) from made
)
select count(*) from made;
