-- The overlap gate of a job whose runs depend on one another is the job's row, locked while its slots are decided. Statements
-- here never wait for that lock, and it does not block transactions that add instances to the job.

-- name: lock_gates
-- tenant: by job
select id, tenant_id, status, lane_id, overlap, active_from, case when after_finish is not null then definition end as definition from horai.job
where id = any ($1::bigint[]) and deleted_at is null and (overlap <> 0 or after_finish is not null)
order by id for no key update skip locked;

-- name: with_gates
-- tenant: by job
-- Returns those of the jobs that have a gate, locked or not.
select id from horai.job where id = any ($1::bigint[]) and deleted_at is null and (overlap <> 0 or after_finish is not null);

-- name: rows_at_gates
-- tenant: by job
-- Returns the live instances without a key of these jobs. Instances of a backfill do not belong to the present: a gate ignores them.
select id, job_id, fire_time, lane = 0 and state <> 1 as is_held, slot >= 0 as is_slot, attempt > 0 as is_begun
from horai.instance_live live where job_id = any ($1::bigint[]) and key is null
    and not exists (select from horai.backfill_instance own where own.instance_id = live.id);

-- name: let_go
-- tenant: by instance
-- Moves held slots to the lane of their job, due now or later.
update horai.instance_live live
set lane = open.lane, due = greatest(live.due, clock_timestamp()), updated_at = clock_timestamp()
from unnest($1::bigint[], $2::integer[]) as open(id, lane)
where live.id = open.id and live.lane = 0 and live.state in (0, 3)
returning live.id, live.lane, live.due;

-- name: last_ends
-- tenant: by job
-- Returns the time when the last slot of each job ended.
select job.id, last.finished_at from unnest($1::bigint[]) as job(id)
cross join lateral (
    select finished_at from horai.instance_history
    where job_id = job.id and slot >= 0 order by fire_time desc, id desc limit 1
) last;

-- name: has_gates
-- tenant: platform
select exists (select from horai.job where (overlap <> 0 or after_finish is not null) and deleted_at is null);

-- name: stuck_gates
-- tenant: platform
-- Returns jobs of these shards with a pending decision: a held slot, or no slot at all where one must follow the end of the
-- last run. $1, $2: a page by id.
select id from horai.job
where id > $1 and (overlap <> 0 or after_finish is not null) and deleted_at is null and status = 0
    and id % $4::bigint = any ($3::bigint[])
    and case when after_finish is null then exists (
            select from horai.instance_live live where live.job_id = job.id and live.slot >= 0 and live.lane = 0 and live.state <> 1
                and not exists (select from horai.backfill_instance own where own.instance_id = live.id))
        else not exists (
            select from horai.instance_live live where live.job_id = job.id and live.slot >= 0
                and not exists (select from horai.backfill_instance own where own.instance_id = live.id)) end
order by id limit $2;
