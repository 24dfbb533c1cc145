-- Records of durable steps, waits and signals. Every write compares the claim of its instance and holds the instance's row, so that no
-- later claim has loaded the records before the write is committed.

-- name: load_steps
-- tenant: platform
select instance_id, kind, name, n, progress, tries, result, error_type, error_msg, until, until <= clock_timestamp() as is_over, child
from horai.step where instance_id = any ($1::bigint[]);

-- name: record_steps
-- tenant: platform
-- Writes records of running instances and returns those that were accepted. A record that is not open stays as it is: the same batch may be
-- written again after a lost answer. A batch may have records of two claims of one instance: only those of the claim that holds count.
-- Skips rows that another transaction has locked; the caller tries again. $10: the time from now
-- until an open step is tried again or a sleep is over; the end of a sleep never moves. $14: how long the step ran.
-- `is_rewound`: a cancel with compensation came during this claim.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[], $7::integer[], $8::smallint[],
        $9::integer[], $10::interval[], $11::json[], $12::text[], $13::text[], $14::interval[])
        as r(id, attempt, fence, node, kind, name, n, progress, tries, delay, result, error_type, error_msg, took)
), claim as (
    select distinct id, attempt, fence, node from report
), held as materialized (
    select live.id, live.fence, live.tenant_id from claim
    join horai.instance_live live on live.id = any (array[claim.id])
        and live.state = 1 and live.attempt = claim.attempt and live.fence = claim.fence and live.node = claim.node
    order by claim.id for share of live skip locked
), kept as (
    insert into horai.step as known (instance_id, tenant_id, kind, name, n, progress, tries, fence, started_at, finished_at, until, result, error_type, error_msg)
    select report.id, held.tenant_id, kind, name, n, progress, tries, report.fence, clock_timestamp() - took,
        case when progress <> 0 then clock_timestamp() end, clock_timestamp() + delay, result, error_type, error_msg
    from report join held on held.id = report.id and held.fence = report.fence
    on conflict (instance_id, kind, name, n) do update set progress = excluded.progress, tries = excluded.tries, fence = excluded.fence,
        finished_at = excluded.finished_at, until = case when known.kind = 2 then known.until else excluded.until end,
        result = excluded.result, error_type = excluded.error_type, error_msg = excluded.error_msg
    where known.progress = 0
    returning known.instance_id, known.kind, known.name, known.n, known.until
)
select held.id, held.fence, kept.kind, kept.name, kept.n, kept.until, exists (
    select from horai.step mark where mark.instance_id = held.id and mark.kind = 5 and mark.fence = held.fence
) as is_rewound
from held left join kept on kept.instance_id = held.id;

-- name: start_over_if_running
-- tenant: platform
-- Gives running instances other payloads (null: that of the job) and forgets their records: their functions begin again with the next claim. The same
-- batch may be written again after a lost answer. Skips rows that another transaction has locked. `is_rewound`: a cancel with compensation came
-- during this claim, and nothing was changed.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::json[]) as r(id, attempt, fence, node, payload)
), held as materialized (
    select live.id, live.fence, report.payload, exists (
        select from horai.step mark where mark.instance_id = live.id and mark.kind = 5
    ) as is_rewound
    from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    order by report.id for update of live skip locked
), given as (
    update horai.instance_live live set payload = coalesce(held.payload, job.payload), updated_at = clock_timestamp()
    from held cross join horai.job where live.id = any (array[held.id]) and not held.is_rewound and job.id = live.job_id
    returning live.id
), forgotten as (
    delete from horai.step where instance_id = any (array(select id from given))
)
select held.id, held.fence, held.is_rewound, clock_timestamp() as at from held;

-- name: hold_waits
-- tenant: platform
-- Locks the rows of running instances that ask for signals; senders wait. Skips rows that another transaction has locked.
select live.id, live.fence from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) as claim(id, attempt, fence, node)
join horai.instance_live live on live.id = any (array[claim.id])
    and live.state = 1 and live.attempt = claim.attempt and live.fence = claim.fence and live.node = claim.node
order by claim.id for no key update of live skip locked;

-- name: open_waits
-- tenant: platform
-- The rows are held. The deadline of a wait counts from its first record.
insert into horai.step (instance_id, tenant_id, kind, name, n, progress, fence, started_at, until)
select asked.id, live.tenant_id, 3, asked.name, asked.n, 0, live.fence, clock_timestamp(), clock_timestamp() + asked.timeout
from unnest($1::bigint[], $2::text[], $3::integer[], $4::interval[]) as asked(id, name, n, timeout)
join horai.instance_live live on live.id = any (array[asked.id])
on conflict do nothing;

-- name: take_signals
-- tenant: platform
-- Gives the first waiting signals of the held instances to their open waits, in order; each signal once.
with asked as (
    select instance_id, name, n, row_number() over (partition by instance_id, name order by n) as place
    from horai.step where instance_id = any ($1::bigint[]) and kind = 3 and progress = 0
), sent as (
    select id, instance_id, name, payload, row_number() over (partition by instance_id, name order by id) as place
    from horai.step_signal where instance_id = any ($1::bigint[]) and consumed_at is null
), taken as (
    update horai.step_signal signal set consumed_at = clock_timestamp(), consumed_by = asked.n
    from asked join sent using (instance_id, name, place) where signal.id = sent.id
    returning signal.instance_id, signal.name, asked.n, signal.payload
)
update horai.step step set progress = 1, finished_at = clock_timestamp(), result = taken.payload
from taken where step.instance_id = taken.instance_id and step.kind = 3 and step.name = taken.name and step.n = taken.n;

-- name: expire_waits
-- tenant: platform
update horai.step set progress = 1, finished_at = clock_timestamp()
where instance_id = any ($1::bigint[]) and kind = 3 and progress = 0 and until <= clock_timestamp();

-- name: waits_of
-- tenant: platform
select instance_id, kind, name, n, progress, tries, result, error_type, error_msg, until, until <= clock_timestamp() as is_over, child
from horai.step where instance_id = any ($1::bigint[]) and kind = 3;

-- name: send_signal
-- tenant: by instance
select signal_id, is_new, lane, due from horai.send_signal($1, $2, $3, $4, $5);

-- name: signalled_instance
-- tenant: $1
-- The live instance of a key.
select live.id from horai.instance_live live
where live.tenant_id = $1 and live.job_id = $2 and live.key = $3;

-- name: forget_steps
-- tenant: platform
-- Forgets the records of instances that are neither live nor in history: reads $2 instances with ids above $1. Returns the last of them; null
-- if there is none.
with page as materialized (
    select distinct instance_id from horai.step where instance_id > $1 order by instance_id limit $2
), gone as materialized (
    select instance_id from page where not exists (select from horai.instance_live live where live.id = page.instance_id)
        and not exists (select from horai.instance_history past where past.id = page.instance_id)
), forgotten as (
    delete from horai.step where instance_id = any (array(select instance_id from gone))
)
select max(instance_id) from page;

-- name: forget_signals
-- tenant: platform
-- The same for signals.
with page as materialized (
    select distinct instance_id from horai.step_signal where instance_id > $1 order by instance_id limit $2
), gone as materialized (
    select instance_id from page where not exists (select from horai.instance_live live where live.id = page.instance_id)
        and not exists (select from horai.instance_history past where past.id = page.instance_id)
), forgotten as (
    delete from horai.step_signal where instance_id = any (array(select instance_id from gone))
)
select max(instance_id) from page;
