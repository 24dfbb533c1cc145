-- The entities of refresh jobs. The results of entities come from the instances of the job: finish_entities records them, at
-- ticks and before reads. The code that runs and settles instances does not know about entities.

-- name: keep_entities
-- tenant: by job
select horai.keep_entities(row($1::bigint, $2::integer, $3::integer, $4::json, null, null, null, null, null, $5::boolean)::horai.wish, $6::text[], $7::json[]) as added;

-- name: drop_entity
-- tenant: by job
select horai.drop_entity($1::bigint, $2::text) as was_one;

-- name: drop_entities
-- tenant: by job
-- The same for several entities, in the order of the keys $2. Returns how many existed.
select count(*) from unnest($2::text[]) as given(key) where horai.drop_entity($1::bigint, given.key);

-- name: matching_keys
-- tenant: by job
-- The keys of a page in order of key, after $2. $4 to $7: as for list_entities; $8: keys, null for any.
select key from horai.entity
where job_id = $1 and key > $2 and ($4::text is null or key >= $4 and starts_with(key, $4)) and ($5::smallint is null or status = $5)
    and ($6::timestamptz is null or coalesce(fresh_at, create_time) < $6) and ($7::bigint is null or batch_no = $7)
    and ($8::text[] is null or key = any ($8))
order by key limit $3;

-- name: clear_entities
-- tenant: by job
-- Deletes some entities of a deleted job; rows that another transaction holds are left for the next call.
with chosen as materialized (
    select key from horai.entity where job_id = $1 limit $2 for update skip locked
)
delete from horai.entity using chosen where entity.job_id = $1 and entity.key = chosen.key returning 1;

-- name: has_entities
-- tenant: by job
select exists (select from horai.entity where job_id = $1);

-- name: load_entities
-- tenant: platform
-- A tick loads up to $4 due entities and marks them in the same statement. An entity is due if it never ran and existed at the
-- tick ($2), or if its last run ended before $3. Rows that another tick has locked are skipped. Entities that never ran come
-- first, then those that have waited longest.
with new as materialized (
    select id, key, finish_time, create_time from horai.entity
    where job_id = $1 and status = 0 and create_time <= $2
    order by create_time, id limit $4 for update skip locked
), old as materialized (
    select id, key, finish_time, create_time from horai.entity
    where job_id = $1 and status in (2, 3) and finish_time <= $3
    order by finish_time, id limit $4::bigint - (select count(*) from new) for update skip locked
), loaded as (
    update horai.entity
    set status = 1, start_time = clock_timestamp(), finish_time = null, remark = null, update_time = clock_timestamp(), batch_no = $5
    from (select * from new union all select * from old) chosen where entity.job_id = $1 and entity.key = chosen.key
    returning entity.key, entity.payload, chosen.finish_time, chosen.create_time, chosen.id
)
select key, payload, finish_time from loaded order by finish_time nulls first, case when finish_time is null then create_time end, id;

-- name: next_due_entity
-- tenant: platform
-- The first entity that load_entities would take.
select key, finish_time from (
    (select key, finish_time from horai.entity where job_id = $1 and status = 0 and create_time <= $2 order by create_time, id limit 1)
    union all
    (select key, finish_time from horai.entity where job_id = $1 and status in (2, 3) and finish_time <= $3 order by finish_time, id limit 1)
) due order by finish_time nulls first limit 1;

-- name: count_due_entities
-- tenant: platform
select (select count(*) from horai.entity where job_id = $1 and status = 0 and create_time <= $2)
    + (select count(*) from horai.entity where job_id = $1 and status in (2, 3) and finish_time <= $3);

-- name: bind_entities
-- tenant: platform
-- The instances that run the loaded entities.
update horai.entity set instance_id = made.id
from unnest($2::text[], $3::bigint[]) as made(key, id) where entity.job_id = $1 and entity.key = made.key;

-- name: adopt_live
-- tenant: platform
-- For keys that already had a live instance: its end counts as the end of the entity.
update horai.entity set instance_id = live.id
from horai.instance_live live
where entity.job_id = $1 and entity.key = any ($2::text[]) and live.job_id = $1 and live.key = entity.key;

-- name: finish_entities
-- tenant: by job
-- Records the ends of the runs of some entities after id $2: those whose keys have no live instance any more. An entity whose
-- instance is neither live nor in history has lost it for good and goes back to not run, but not within a minute of its load:
-- even if this statement did not wait for a lock, its snapshot may be older than the row that it has just locked. The error text of an
-- encrypted job is an envelope, which cannot be cut.
with running as materialized (
    select id, key, start_time, instance_id from horai.entity
    where job_id = $1 and status = 1 and id > $2 order by id limit $3 for update skip locked
), seen as (
    select running.key, coalesce(live.id, running.instance_id) as instance_id, past.finished_at,
        case when live.id is not null then 1 when past.state = 2 then 2 when past.state is not null then 3 else 0 end as status,
        case past.state when 2 then '执行成功' when 5 then 'cancelled'
            else left(concat_ws(': ', past.error_code, past.error_msg), case when job.encrypted then 1000000 else 2000 end) end as remark
    from running cross join (select encrypted from horai.job where id = $1) job
    left join horai.instance_live live on live.job_id = $1 and live.key = running.key
    left join lateral (
        select gone.state, gone.finished_at, gone.error_code, gone.error_msg from horai.instance_history gone
        where live.id is null and gone.job_id = $1 and gone.key = running.key and gone.finished_at >= running.start_time
        order by gone.finished_at desc limit 1
    ) past on true
    where live.id is null and (past.state is not null or running.start_time < clock_timestamp() - interval '1 minute')
        or live.id <> running.instance_id
), written as (
    update horai.entity
    set status = seen.status, finish_time = seen.finished_at, remark = seen.remark, fresh_at = coalesce(seen.finished_at, entity.fresh_at),
        instance_id = seen.instance_id, update_time = clock_timestamp()
    from seen where entity.job_id = $1 and entity.key = seen.key
    returning entity.status
)
select (select max(id) from running) as last_id, (select count(*) from running) as looked, (select count(*) from written where status <> 1) as ended;

-- name: refreshes_waiting
-- tenant: platform
-- The number of runs of entities that are due but not started, up to $2. A run that was claimed and returned, because its host
-- had no capacity, is not started: its execute time has not changed, as it does when a handler postpones it.
select count(*) from (
    select from horai.instance_live
    where job_id = $1 and key is not null and state = 0 and (attempt = 0 or due > execute_time) and execute_time <= clock_timestamp() limit $2
) waiting;

-- name: refreshed_by
-- tenant: platform
-- The refresh job whose ticks the job $1 makes, locked while instances are added to it.
select job.id from horai.job ticks join horai.job on job.id = ticks.ticks_for and job.deleted_at is null
where ticks.id = $1 for key share of job;

-- name: lock_batch
-- tenant: platform
-- The progress of a tick, locked exclusively: two attempts of it do not load at the same time.
select fire_time, due, loaded, started_at, ended_at, clock_timestamp() as now,
    exists (select from horai.refresh_batch later where later.job_id = $1 and (later.fire_time, later.batch_no) > (batch.fire_time, batch.batch_no)) as is_followed
from horai.refresh_batch batch where job_id = $1 and batch_no = $2 for update;

-- name: begin_batch
-- tenant: platform
insert into horai.refresh_batch (tenant_id, job_id, batch_no, fire_time, due)
select tenant_id, id, $2, $3, $4 from horai.job where id = $1 on conflict do nothing;

-- name: forget_batches
-- tenant: platform
-- Keeps the last 100 ticks of a job.
delete from horai.refresh_batch batch using (
    select fire_time, batch_no from horai.refresh_batch where job_id = $1 order by fire_time desc, batch_no desc offset 100 limit 1
) old
where batch.job_id = $1 and (batch.fire_time, batch.batch_no) <= (old.fire_time, old.batch_no);

-- name: note_loaded
-- tenant: platform
update horai.refresh_batch set loaded = loaded + $3 where job_id = $1 and batch_no = $2;

-- name: end_batch
-- tenant: platform
update horai.refresh_batch set ended_at = coalesce(ended_at, clock_timestamp()) where job_id = $1 and batch_no = $2;

-- name: batch_counts
-- tenant: by job
-- The states of the entities that a tick loaded and no later tick has loaded.
select count(*) filter (where status = 1) as running, count(*) filter (where status = 2) as succeeded, count(*) filter (where status = 3) as failed
from horai.entity where job_id = $1 and batch_no = $2;

-- name: last_batch
-- tenant: by job
select batch_no, fire_time, due, loaded, started_at, ended_at from horai.refresh_batch
where job_id = $1 order by fire_time desc, batch_no desc limit 1;

-- name: refresh_counts
-- tenant: by job
-- Entities that ended before $2 (a window ago) are due; entities whose age started before $3 are overdue. Each count uses an
-- index, and only the first scans all entities: in normal operation the others count few rows.
select (select count(*) from horai.entity where job_id = $1) as entities,
    (select count(*) from horai.entity where job_id = $1 and fresh_at is null) as never_run,
    (select count(*) from horai.entity where job_id = $1 and status = 1) as running,
    (select count(*) from horai.entity where job_id = $1 and status = 0)
        + (select count(*) from horai.entity where job_id = $1 and status in (2, 3) and finish_time <= $2) as due,
    (select count(*) from horai.entity where job_id = $1 and fresh_at < $3)
        + (select count(*) from horai.entity where job_id = $1 and fresh_at is null and create_time < $3) as overdue,
    (select count(*) from horai.entity where job_id = $1 and fresh_at < $2) as stale,
    (select count(*) from horai.entity where job_id = $1 and status = 3 and finish_time > $2) as failed;

-- name: oldest_entities
-- tenant: by job
-- The entities whose last run ended longest ago, and the first of those that never ran: their age counts from when they were
-- added. $3: the largest payload that is listed, in bytes.
select id, job_id, key, status, start_time, finish_time, fresh_at, remark, batch_no, instance_id, create_time, update_time,
    octet_length(payload::text) as payload_size, case when octet_length(payload::text) <= $3 then payload end as payload
from (
    (select * from horai.entity where job_id = $1 and fresh_at is not null order by fresh_at, id limit $2)
    union all
    (select * from horai.entity where job_id = $1 and fresh_at is null order by id limit $2)
) oldest;

-- name: entity_by_key
-- tenant: by job
select * from horai.entity where job_id = $1 and key = $2;

-- name: list_entities
-- tenant: by job
-- A page in order of key, after $2. $4: prefix; $5: status; $6: not fresh since; $7: batch; $8: the largest payload that is
-- listed, in bytes.
select id, job_id, key, status, start_time, finish_time, fresh_at, remark, batch_no, instance_id, create_time, update_time,
    octet_length(payload::text) as payload_size, case when octet_length(payload::text) <= $8 then payload end as payload
from horai.entity
where job_id = $1 and key > $2 and ($4::text is null or key >= $4 and starts_with(key, $4)) and ($5::smallint is null or status = $5)
    and ($6::timestamptz is null or coalesce(fresh_at, create_time) < $6) and ($7::bigint is null or batch_no = $7)
order by key limit $3;

-- name: count_entities
-- tenant: by job
-- The entities that match among the first $6 by key, and the number of these. $2 to $5: $4 to $7 of list_entities.
select count(*) filter (
    where ($3::smallint is null or status = $3) and ($4::timestamptz is null or coalesce(fresh_at, create_time) < $4)
        and ($5::bigint is null or batch_no = $5)
) as matched, count(*) as looked_at
from (
    select status, fresh_at, create_time, batch_no from horai.entity
    where job_id = $1 and ($2::text is null or key >= $2 and starts_with(key, $2)) order by key limit $6::bigint
) first;

-- name: list_entities_freshest
-- tenant: by job
-- reversed: list_entities_stalest
-- A page by the end of the last run, newest first, then the entities that have not run, by id. $2 and $3: the refreshed ones before this
-- time and id; $4: the others before this id; $5: page size; $6: prefix; $7: status; $8: not fresh since; $9: batch; $10: the largest payload
-- that is listed, in bytes.
select id, job_id, key, status, start_time, finish_time, fresh_at, remark, batch_no, instance_id, create_time, update_time,
    octet_length(payload::text) as payload_size, case when octet_length(payload::text) <= $10 then payload end as payload
from (
    (select * from horai.entity
    where job_id = $1 and fresh_at is not null and (fresh_at, id) < ($2, $3) and ($6::text is null or key >= $6 and starts_with(key, $6))
        and ($7::smallint is null or status = $7) and ($8::timestamptz is null or fresh_at < $8) and ($9::bigint is null or batch_no = $9)
    order by fresh_at desc, id desc limit $5)
    union all
    (select * from horai.entity
    where job_id = $1 and fresh_at is null and (id) < ($4) and ($6::text is null or key >= $6 and starts_with(key, $6))
        and ($7::smallint is null or status = $7) and ($8::timestamptz is null or create_time < $8) and ($9::bigint is null or batch_no = $9)
    order by id desc limit $5)
) listed
order by fresh_at is not null desc, fresh_at desc, id desc limit $5;
