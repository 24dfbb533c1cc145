-- Runs that may be stuck, and the queues whose slots they hold. Every statement uses an index and reads a bounded number of rows; none
-- runs unless an operator or a rule asks.

-- name: long_runs
-- tenant: $1
-- The runs claimed before $2, longest first, at most $6. A claim changes neither lane nor due, and takes the rows of a scan in the order
-- of due: the running rows of each scan are the first ones. Only the first $4 rows of each of the $3 shards are read, in the first $5
-- lanes.
select live.id, live.job_id, job.name as job, lane.queue, live.key, live.attempt, node.name as node, live.claimed_at
from (select id, queue from horai.lane where tenant_id = $1 order by id limit $5) lane
cross join generate_series(0, $3::integer - 1) as shard(n)
cross join lateral (
    select first.id, first.job_id, first.key, first.attempt, first.node, first.claimed_at, first.state from horai.instance_live first
    where first.shard = shard.n and first.lane = lane.id and first.due < $2 order by first.due, first.id limit $4
) live
join horai.job on job.id = live.job_id
left join horai.node on node.incarnation = live.node
where live.state = 1 and live.claimed_at < $2
order by live.claimed_at, live.id limit $6;

-- name: running_instance
-- tenant: $1
-- The instance $2, if it runs since before $3.
select live.id, live.job_id, job.name as job, lane.queue, live.key, live.attempt, node.name as node, live.claimed_at
from horai.instance_live live
join horai.job on job.id = live.job_id
join horai.lane on lane.id = live.lane
left join horai.node on node.incarnation = live.node
where live.tenant_id = $1 and live.id = $2 and live.state = 1 and live.claimed_at < $3;

-- name: usual_durations
-- tenant: by job
-- The number, the p95 and the longest of the successes among the last $3 runs of each job that ended since $2, the begin of a day: whole
-- partitions are left out, and the index of each other one gives its newest rows.
select job.id, usual.samples, usual.p95, usual.longest from unnest($1::bigint[]) as job(id)
cross join lateral (
    select count(*) as samples, percentile_disc(0.95) within group (order by past.finished_at - past.claimed_at) as p95,
        max(past.finished_at - past.claimed_at) as longest
    from (
        select history.state, history.claimed_at, history.finished_at from horai.instance_history history
        where history.job_id = job.id and history.finished_at >= $2 order by history.fire_time desc, history.id desc limit $3
    ) past
    where past.state = 2 and past.claimed_at is not null
) usual
where usual.samples > 0;

-- name: long_holders
-- tenant: $1
-- The holders since before $2 of queues that have as many of these as slots: of the queue $3, or of the first $4 such queues.
with full_queue as materialized (
    select queue.id, queue.name, queue.max_concurrency from horai.queue
    where queue.tenant_id = $1 and queue.max_concurrency is not null and not queue.is_pool and ($3::text is null or queue.name = $3) and (
        select count(*) from horai.queue_slot slot
        where slot.queue_id = queue.id and slot.instance_id is not null and slot.taken_at < $2) >= queue.max_concurrency
    order by queue.id limit $4
)
select full_queue.id as queue_id, full_queue.max_concurrency, live.id, live.job_id, job.name as job, full_queue.name as queue, live.key,
    live.attempt, node.name as node, live.claimed_at
from full_queue join horai.queue_slot slot on slot.queue_id = full_queue.id and slot.instance_id is not null and slot.taken_at < $2
join horai.instance_live live on live.id = any (array[slot.instance_id]) and live.fence = slot.fence and live.state = 1
join horai.job on job.id = live.job_id
left join horai.node on node.incarnation = live.node
order by full_queue.id, live.claimed_at, live.id;

-- name: full_queues
-- tenant: $1
-- The first $3 queues that have no free slot, each with the due time of the oldest instance that waits in it since before $2; those
-- that wait longest first. A pause holds its instances on purpose. The running rows of a scan are the first ones, so that the first
-- waiting one is behind them: only the first $5 rows of each of the $4 shards are read.
with full_queue as materialized (
    select queue.id, queue.name, queue.max_concurrency from horai.queue
    where queue.tenant_id = $1 and queue.max_concurrency is not null and not queue.is_pool and not queue.paused and not queue.held and (
        select count(*) from horai.queue_slot slot where slot.queue_id = queue.id and slot.instance_id is not null) >= queue.max_concurrency
    order by queue.id limit $3
)
select full_queue.id, full_queue.name, full_queue.max_concurrency, oldest.due
from full_queue cross join lateral (
    select min(waiting.due) as due from horai.lane cross join generate_series(0, $4::integer - 1) as shard(n)
    cross join lateral (
        select near.due from (
            select live.due, live.state from horai.instance_live live
            where live.shard = shard.n and live.lane = lane.id and live.due < $2 order by live.due, live.id limit $5
        ) near
        where near.state in (0, 3) order by near.due limit 1
    ) waiting
    where lane.queue_id = full_queue.id
) oldest
where oldest.due is not null order by oldest.due, full_queue.id;

-- name: longest_holders
-- tenant: by queue
-- The $2 runs that hold slots of each of the queues $1 longest. The call of an instance that was cancelled holds its slot until it ends,
-- and is no run any more.
select queue.id as queue_id, live.id, live.job_id, job.name as job, queue.name as queue, live.key, live.attempt, node.name as node, live.claimed_at
from horai.queue cross join lateral (
    select row.id, row.job_id, row.key, row.attempt, row.node, row.claimed_at from horai.queue_slot slot
    join horai.instance_live row on row.id = any (array[slot.instance_id]) and row.fence = slot.fence and row.state = 1
    where slot.queue_id = queue.id and slot.instance_id is not null order by slot.taken_at, slot.n limit $2
) live
join horai.job on job.id = live.job_id
left join horai.node on node.incarnation = live.node
where queue.id = any ($1::integer[])
order by queue.id, live.claimed_at, live.id;

-- name: full_among
-- tenant: $1
-- Those of the queues $2 that have no free slot.
select queue.id, queue.name from horai.queue
where queue.tenant_id = $1 and queue.name = any ($2::text[]) and queue.max_concurrency is not null and not queue.is_pool and (
    select count(*) from horai.queue_slot slot where slot.queue_id = queue.id and slot.instance_id is not null) >= queue.max_concurrency;

-- name: nodes_behind
-- tenant: by instance
-- How many nodes of its workflow run wait for each of the instances $1, directly or through other nodes. An instance is a node or an
-- item of one.
with recursive behind as (
    select node.instance_id as cause, node.run_id, node.name from horai.workflow_node node
    where node.instance_id = any ($1::bigint[]) and node.is_current and node.ended is null
    union
    select item.instance_id, item.run_id, item.name from horai.workflow_item item
    where item.instance_id = any ($1::bigint[]) and item.ended is null
    union
    select behind.cause, next.run_id, next.name from behind join horai.workflow_node next
        on next.run_id = behind.run_id and next.is_current and next.ended is null and behind.name = any (next.after)
)
select cause, count(*) - 1 as nodes from behind group by cause;
