-- Dead letters: what people ask of them, and what a replay or a discard writes. The filter is the same everywhere: $1 tenant,
-- $2 job, $3 tag, $4 error code, $5 fingerprint, $6 status, $7 instance, $8 from, $9 until; null for those that are not asked for.

-- name: letter_by_id
select letter.*, job.name as job, job.deleted_at is not null as is_job_deleted, past.key
from horai.dead_letter letter join horai.job on job.id = letter.job_id
left join lateral (select key from horai.instance_history where id = letter.instance_id limit 1) past on true
where letter.tenant_id = $1 and letter.id = $2;

-- name: list_letters
-- A page, newest first, that starts before ($10, $11).
with page as materialized (
    select * from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7)
        and ($8::timestamptz is null or created_at >= $8) and ($9::timestamptz is null or created_at < $9) and (created_at, id) < ($10, $11)
    order by created_at desc, id desc limit $12
)
select page.*, job.name as job, job.deleted_at is not null as is_job_deleted, past.key
from page join horai.job on job.id = page.job_id
left join lateral (select key from horai.instance_history where id = page.instance_id limit 1) past on true
order by page.created_at desc, page.id desc;

-- name: group_letters
-- Faults by how often they came, among the newest $10 letters that match; the number of those looked at stands in each row.
-- hours: how many of the last day came how many hours ago.
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
select counted.*, job.name as job, (select count(*) from newest) as looked_at,
    (select hours from hourly where (hourly.job_id, hourly.error_code) = (counted.job_id, counted.error_code)
        and hourly.fingerprint is not distinct from counted.fingerprint) as hours
from counted join horai.job on job.id = counted.job_id
order by letters desc, last_at desc limit $11;

-- name: count_replayable
-- How many letters a replay would take, counted up to $10.
select count(*) as letters from (
    select from horai.dead_letter letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7) and replay_status = 'NEW'
        and ($8::timestamptz is null or created_at >= $8) and created_at < $9
        and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
        and exists (select from horai.instance_history past where past.id = letter.instance_id)
    limit $10
) counted;

-- name: lock_replayable
-- The oldest $12 letters after ($10, $11) that a replay may take and that nobody else holds: another replay that asks at the
-- same time gets others. A letter whose job is deleted, or whose instance is no longer kept, cannot be replayed.
select id, instance_id, job_id, created_at from horai.dead_letter letter
where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
    and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7) and replay_status = 'NEW'
    and ($8::timestamptz is null or created_at >= $8) and created_at < $9 and (created_at, id) > ($10, $11)
    and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
    and exists (select from horai.instance_history past where past.id = letter.instance_id)
order by created_at, id limit $12 for update of letter skip locked;

-- name: count_open_of
-- How many of the dead instances $1 a replay would take.
select count(*) from horai.dead_letter letter
where instance_id = any ($1::bigint[]) and replay_status = 'NEW'
    and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
    and exists (select from horai.instance_history past where past.id = letter.instance_id);

-- name: lock_open_of
-- The open letters of the dead instances $1, waited for as long as lock_timeout allows; by id, as everybody locks many.
select id, instance_id, job_id, created_at from horai.dead_letter letter
where instance_id = any ($1::bigint[]) and replay_status = 'NEW'
    and exists (select from horai.job where job.id = letter.job_id and deleted_at is null)
    and exists (select from horai.instance_history past where past.id = letter.instance_id)
order by id for update of letter;

-- name: lock_letter
-- One letter, waited for as long as lock_timeout allows.
select id, instance_id, job_id, created_at, replay_status from horai.dead_letter where tenant_id = $1 and id = $2 for update;

-- name: share_lanes
-- Where new instances of these jobs go; none for a job that is deleted. The lock orders it against a pause.
select id, case when status = 0 then lane_id else 0 end as lane from horai.job
where id = any ($1::bigint[]) and deleted_at is null order by id for key share;

-- name: insert_replays
-- moves: -> INIT
-- A new instance of each dead one: its job, key, payload, version and fire time; $2 when, $3 and $4 the lanes of their jobs. The
-- fence goes on. Who does not come back: its key has a live instance. Ordered by key, as puts are: no two wait crosswise.
insert into horai.instance_live (id, job_id, tenant_id, lane, shard, key, fire_time, execute_time, born_for, due, slot, payload, version, fence, replay_of)
select fresh.new_id, fresh.job_id, fresh.tenant_id, fresh.to_lane, fresh.new_id % $5, fresh.key, fresh.fire_time, fresh.at, fresh.fire_time,
    greatest(fresh.at, clock_timestamp()), -fresh.new_id, fresh.payload, fresh.version, fresh.fence, fresh.id
from (
    select nextval('horai.instance_id') as new_id, dead.*
    from (
        select past.*, wish.at, target.lane as to_lane
        from unnest($1::bigint[], $2::timestamptz[]) as wish(instance_id, at)
        join horai.instance_history past on past.id = wish.instance_id
        join unnest($3::bigint[], $4::integer[]) as target(job_id, lane) on target.job_id = past.job_id
        order by past.job_id, past.key, wish.at
    ) dead
) fresh
on conflict (job_id, key) where key is not null do nothing
returning id, replay_of, lane, due;

-- name: pasts_of_replays
-- What history knows of the keys that this transaction has just taken. Asked in a later statement than the insert: with the
-- key taken, whatever finished before is visible there.
select live.id, bool_or(past.state = 2 and past.finished_at > dead.finished_at) as succeeded, max(past.version) as version, max(past.fence) as fence
from horai.instance_live live
join horai.instance_history dead on dead.id = live.replay_of
join horai.instance_history past on past.job_id = live.job_id and past.key = live.key
where live.id = any ($1::bigint[]) and live.key is not null
group by live.id;

-- name: mark_replayed
-- The letter says what it was replayed as, and the dead instance tells of it.
with marked as (
    update horai.dead_letter letter set replay_status = 'REPLAYED', replayed_as = made.id
    from unnest($1::bigint[], $2::bigint[]) as made(letter_id, id)
    where letter.id = made.letter_id and letter.replay_status = 'NEW' returning letter.*
)
insert into horai.event (tenant_id, job_id, instance_id, kind, data)
select tenant_id, job_id, instance_id, 'INSTANCE_REPLAYED', json_build_object('letter', id::text, 'replayedAs', replayed_as::text) from marked;

-- name: mark_superseded
update horai.dead_letter set replay_status = 'SUPERSEDED' where id = any ($1::bigint[]) and replay_status = 'NEW';

-- name: discard_letter
-- Nobody will replay it; $2 why. No row: it is not NEW.
with marked as (
    update horai.dead_letter set replay_status = 'DISCARDED', reason = $2 where id = $1 and replay_status = 'NEW' returning *
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, kind, data)
    select tenant_id, job_id, instance_id, 'INSTANCE_DISCARDED', json_build_object('letter', id::text, 'reason', reason) from marked
)
select id from marked;

-- name: count_open
-- How many letters a discard would take, counted up to $10.
select count(*) as letters from (
    select from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7)
        and replay_status = 'NEW' and ($8::timestamptz is null or created_at >= $8) and created_at < $9
    limit $10
) counted;

-- name: discard_open
-- The oldest $10 open letters that match and that nobody holds are discarded for the reason $11; how many.
with chosen as (
    select id from horai.dead_letter
    where tenant_id = $1 and ($2::bigint is null or job_id = $2) and ($3::text is null or tags @> array[$3]) and ($4::text is null or error_code = $4)
        and ($5::text is null or fingerprint = $5) and ($6::text is null or replay_status = $6) and ($7::bigint is null or instance_id = $7)
        and replay_status = 'NEW' and ($8::timestamptz is null or created_at >= $8) and created_at < $9
    order by created_at, id limit $10 for update skip locked
), marked as (
    update horai.dead_letter letter set replay_status = 'DISCARDED', reason = $11 from chosen where letter.id = chosen.id returning letter.*
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, kind, data)
    select tenant_id, job_id, instance_id, 'INSTANCE_DISCARDED', json_build_object('letter', id::text, 'reason', reason) from marked
)
select count(*) from marked;
