-- Checks of the invariants over the whole store, for `horai db verify` and every fault test. Each statement returns one row per
-- violation, at most $1, each with the total number of violations; no row means that the invariant holds. They only read, each
-- in one snapshot, so that a row that moves from live to history is seen in exactly one of the two tables.
-- Retention deletes history: rows older than the time from which on the history of their job is complete (job_kept_from) are not checked
-- against rows that are gone.

-- name: verify_final_once
-- tenant: platform
select format('instance %s is in history %s times', id, copies) as example, count(*) over () as violations
from (select id, count(*) as copies from horai.instance_history group by id having count(*) > 1) again
order by id limit $1;

-- name: verify_final_or_live
-- tenant: platform
select format('instance %s is %s and %s', past.id, horai.state_name(live.state), horai.state_name(past.state)) as example,
    count(*) over () as violations
from horai.instance_live live join horai.instance_history past on past.id = live.id
order by past.id limit $1;

-- name: verify_outcome_fence
-- tenant: platform
-- A FAIL or DEAD instance has the attempt row of the claim that reported it; no attempt is ahead of its instance. A release takes
-- the attempt of its claim back: a late report of that claim may have a higher attempt than the instance, but no higher fence.
with instance as (
    select id, job_id, state, attempt, fence, created_at from horai.instance_live
    union all
    select id, job_id, state, attempt, fence, created_at from horai.instance_history
)
select example, count(*) over () as violations from (
    select i.id, format('instance %s is %s without the outcome of attempt %s, fence %s', i.id, horai.state_name(i.state), i.attempt, i.fence) as example
    from instance i join horai.job_kept_from kept on kept.job_id = i.job_id
    where i.state in (3, 4) and i.created_at >= kept.since and not exists (
        select from horai.attempt a where a.instance_id = i.id and a.attempt = i.attempt and a.fence = i.fence and not a.late)
    union all
    select i.id, format('attempt %s, fence %s is ahead of instance %s: attempt %s, fence %s', a.attempt, a.fence, i.id, i.attempt, i.fence)
    from horai.attempt a join instance i on i.id = a.instance_id where a.attempt > i.attempt and not a.late or a.fence > i.fence
    union all
    select i.id, format('instance %s is %s without a claim', i.id, horai.state_name(i.state))
    from instance i where i.state in (1, 2, 3, 4) and (i.attempt < 1 or i.fence < 1)
) found order by id limit $1;

-- name: verify_reschedule_kept
-- tenant: platform
-- A rescheduled instance has the time of its last event: retries change execute_time, only a put changes fire_time.
with moved as (
    select distinct on (instance_id) instance_id, (data ->> 'executeTime')::timestamptz as wished
    from horai.event where kind = 'INSTANCE_RESCHEDULED' order by instance_id, seq desc
), instance as (
    select id, fire_time from horai.instance_live
    union all
    select id, fire_time from horai.instance_history
)
select format('instance %s fires at %s, though it was put to %s', i.id, i.fire_time, moved.wished) as example, count(*) over () as violations
from moved join instance i on i.id = moved.instance_id
where i.fire_time <> moved.wished
order by i.id limit $1;

-- name: verify_successor_made
-- tenant: platform
-- A superseded instance has exactly one successor, created for the time that the put asked for.
with successor as (
    select id, supersedes, born_for from horai.instance_live where supersedes is not null
    union all
    select id, supersedes, born_for from horai.instance_history where supersedes is not null
), wish as (
    select instance_id, (data ->> 'executeTime')::timestamptz as wished
    from horai.event where kind = 'INSTANCE_CANCELLED' and data ->> 'reason' = 'SUPERSEDED'
), counted as (
    select past.id, count(successor.id) as successors, min(successor.born_for) as born_for, min(wish.wished) as wished
    from horai.instance_history past
    left join successor on successor.supersedes = past.id
    left join wish on wish.instance_id = past.id
    where past.state = 5 and past.reason = 2
    group by past.id
)
select format('instance %s was superseded for %s and has %s successors, born for %s', id, wished, successors, born_for) as example,
    count(*) over () as violations
from counted where successors <> 1 or born_for <> wished
order by id limit $1;

-- name: verify_one_live_per_key
-- tenant: platform
select format('job %s, key %s has %s live instances', job_id, left(key, 60), copies) as example, count(*) over () as violations
from (
    select job_id, key, count(*) as copies from horai.instance_live where key is not null group by job_id, key having count(*) > 1
) again
order by job_id, key limit $1;

-- name: verify_stuck_running
-- tenant: platform
-- RUNNING on a node that will never settle it and will not be rescued again, or that was not rescued within $2.
select format('instance %s runs on incarnation %s, which %s', live.id, live.node,
        case when node.incarnation is null then 'does not exist' when node.rescued_at is not null then 'has been rescued'
        else 'is dead and waits for its rescue' end) as example,
    count(*) over () as violations
from horai.instance_live live left join horai.node on node.incarnation = live.node
where live.state = 1 and live.node <> 0 and (
    node.incarnation is null or node.rescued_at is not null
    or (least(node.fenced_at, node.stopped_at, node.lease_until) < clock_timestamp() - $2::interval and exists (
        select from horai.node other where other.fenced_at is null and other.stopped_at is null
            and other.lease_until > clock_timestamp() and other.started_at < clock_timestamp() - $2::interval)))
order by live.id limit $1;

-- name: verify_overdue
-- tenant: platform
-- Due for longer than $2 although a node has been live for all that time. Only HTTP lanes: the others may wait for a worker.
-- Excludes instances that their queue holds back: by a pause, by permits (its own or those of its tenant's pool) that are all taken or
-- were taken within $2, or by a rate without tokens.
select format('instance %s is %s and due since %s', live.id, horai.state_name(live.state), live.due) as example, count(*) over () as violations
from horai.instance_live live join horai.lane on lane.id = live.lane and lane.handler = '' join horai.queue on queue.id = lane.queue_id
where live.state in (0, 3) and live.due < clock_timestamp() - $2::interval and exists (
    select from horai.node where fenced_at is null and stopped_at is null
        and lease_until > clock_timestamp() and started_at < clock_timestamp() - $2::interval)
    and not queue.paused and not queue.held and (queue.version = 0 or queue.updated_at < clock_timestamp() - $2::interval)
    and not exists (
        select from horai.queue owner where owner.id in (queue.id, queue.pool_id) and owner.max_concurrency is not null and (
            owner.updated_at > clock_timestamp() - $2::interval
            or not exists (select from horai.queue_slot slot where slot.queue_id = owner.id and slot.instance_id is null)
            or exists (select from horai.queue_slot slot where slot.queue_id = owner.id and slot.taken_at > clock_timestamp() - $2::interval)))
    and (queue.rate_count is null or queue.tokens
        + extract(epoch from clock_timestamp() - $2::interval - queue.refilled_at) * queue.rate_count / extract(epoch from queue.rate_per) >= 1)
order by live.due, live.id limit $1;

-- name: verify_slot_once
-- tenant: platform
select format('job %s, slot %s (generation %s) was made %s times', job_id, fire_time, slot, copies) as example, count(*) over () as violations
from (
    select job_id, fire_time, slot, count(*) as copies
    from (
        select job_id, fire_time, slot from horai.instance_live where slot >= 0
        union all
        select job_id, fire_time, slot from horai.instance_history where slot >= 0
    ) made
    group by job_id, fire_time, slot having count(*) > 1
) again
order by job_id, fire_time limit $1;

-- name: verify_slots_dense
-- tenant: platform
-- Only fixed rates, whose steps SQL can count: between two slots of a job's present schedule no slot is missing, unless it is
-- recorded as skipped or a catch-up still has to create it. Only the core can compute the slots of cron expressions and calendars.
with slot as (
    select job_id, fire_time from horai.instance_live where slot = 0
    union all
    select job_id, fire_time from horai.instance_history where slot = 0
), pair as (
    select job.id as job_id, job.schedule_id, (schedule.spec ->> 'every')::interval as step, slot.fire_time as upper,
        lag(slot.fire_time) over (partition by job.id order by slot.fire_time) as lower
    from horai.job join horai.schedule on schedule.id = job.schedule_id
        and schedule.spec ->> 'every' is not null and schedule.spec -> 'calendar' is null
    join slot on slot.job_id = job.id and slot.fire_time > job.active_from
)
select format('job %s has no slot between %s and %s', pair.job_id, lower, upper) as example, count(*) over () as violations
from pair join horai.job_kept_from kept on kept.job_id = pair.job_id
where upper - lower > step and lower >= kept.since
    and not exists (
        select from horai.catchup where catchup.job_id = pair.job_id and catchup.next_time < pair.upper and catchup.until_time > pair.lower
    ) and (not exists (
        select from horai.skip where skip.schedule_id = pair.schedule_id and coalesce(skip.job_id, pair.job_id) = pair.job_id
            and skip.from_time <= pair.lower + pair.step and skip.to_time > pair.lower
    ) or not exists (
        select from horai.skip where skip.schedule_id = pair.schedule_id and coalesce(skip.job_id, pair.job_id) = pair.job_id
            and skip.from_time < pair.upper and skip.to_time >= pair.upper - pair.step
    ))
order by pair.job_id, lower limit $1;

-- name: verify_attempts_rise
-- tenant: platform
-- A claim adds one to attempt and to fence, a release without a call takes one from attempt, a failure adds one to retry_count,
-- a loss adds one to lost, and every failure and loss has its attempt row. The fence of a successor continues from its predecessor.
with instance as (
    select id, job_id, attempt, retry_count, fence, supersedes, created_at from horai.instance_live
    union all
    select id, job_id, attempt, retry_count, fence, supersedes, created_at from horai.instance_history
), failed as (
    select instance_id, count(*) filter (where outcome <> 'LOST') as failures, count(*) filter (where outcome = 'LOST') as losses
    from horai.attempt where not late group by instance_id
)
select example, count(*) over () as violations from (
    select instance_id as id, format('instance %s has attempt %s %s times', instance_id, attempt, count(*)) as example
    from horai.attempt where not late group by instance_id, attempt having count(*) > 1
    union all
    select i.id, format('instance %s has failed %s times, with %s failed attempts', i.id, i.retry_count, coalesce(failed.failures, 0))
    from instance i left join failed on failed.instance_id = i.id join horai.job_kept_from kept on kept.job_id = i.job_id
    where i.retry_count <> coalesce(failed.failures, 0) and (i.created_at >= kept.since or i.retry_count < failed.failures)
    union all
    select live.id, format('instance %s was lost %s times, with %s lost attempts', live.id, live.lost, coalesce(failed.losses, 0))
    from horai.instance_live live left join failed on failed.instance_id = live.id join horai.job_kept_from kept on kept.job_id = live.job_id
    where live.lost <> coalesce(failed.losses, 0) and (live.created_at >= kept.since or live.lost < failed.losses)
    union all
    select i.id, format('instance %s has attempt %s, retry count %s, fence %s', i.id, i.attempt, i.retry_count, i.fence)
    from instance i
    where i.attempt < i.retry_count or i.fence < i.attempt
    union all
    select i.id, format('instance %s has fence %s after %s attempts, its predecessor ended with %s', i.id, i.fence, i.attempt, past.fence)
    from instance i join horai.instance_history past on past.id = i.supersedes
    where i.fence < past.fence + i.attempt
) found order by id limit $1;

-- name: verify_running_has_owner
-- tenant: platform
select format('instance %s is %s with node %s, claim %s, claimed at %s, fence %s, attempt %s', id, horai.state_name(state),
        node, claim, claimed_at, fence, attempt) as example,
    count(*) over () as violations
from horai.instance_live
where (state = 1) <> (node is not null) or (state = 1) <> (claim is not null) or (state = 1) <> (claimed_at is not null)
    or (state = 1 and (fence < 1 or attempt < 1))
    or (node = 0 and not exists (select from horai.workflow_run run where run.id = instance_live.id and run.phase = 0))
order by id limit $1;

-- name: verify_change_told
-- tenant: platform
-- The last event of a DEAD or CANCELLED instance records that state, and a late attempt has an event too. A success has no
-- event: its history row records it.
select example, count(*) over () as violations from (
    select past.id, format('instance %s is %s, and no event says so', past.id, horai.state_name(past.state)) as example
    from horai.instance_history past join horai.job_kept_from kept on kept.job_id = past.job_id
    where past.state in (4, 5) and past.finished_at >= kept.since and not exists (
        select from horai.event where event.instance_id = past.id and event.seq = past.events
            and event.kind = case past.state when 4 then 'INSTANCE_DEAD' else 'INSTANCE_CANCELLED' end)
    union all
    select live.id, format('instance %s has failed %s times, and events tell of %s', live.id, live.retry_count, told.failures)
    from horai.instance_live live join horai.job_kept_from kept on kept.job_id = live.job_id cross join lateral (
        select count(*) as failures from horai.event where event.instance_id = live.id and event.kind = 'INSTANCE_FAILED'
    ) told
    where live.created_at >= kept.since and live.retry_count <> told.failures
    union all
    select live.id, format('instance %s was lost %s times, and events tell of %s', live.id, live.lost, told.losses)
    from horai.instance_live live join horai.job_kept_from kept on kept.job_id = live.job_id cross join lateral (
        select count(*) as losses from horai.event where event.instance_id = live.id and event.kind = 'INSTANCE_LOST'
    ) told
    where live.created_at >= kept.since and live.lost <> told.losses
    union all
    select late.instance_id, format('instance %s has %s late attempts, and events tell of %s', late.instance_id, late.attempts, told.results)
    from (select instance_id, job_id, count(*) as attempts, min(finished_at) as first from horai.attempt where late group by 1, 2) late
    join horai.job_kept_from kept on kept.job_id = late.job_id cross join lateral (
        select count(*) as results from horai.event where event.instance_id = late.instance_id and event.kind = 'INSTANCE_LATE_RESULT'
    ) told
    where late.first >= kept.since and late.attempts <> told.results
) found order by id limit $1;

-- name: verify_events_dense
-- tenant: platform
with instance as (
    select id, job_id, events, created_at from horai.instance_live
    union all
    select id, job_id, events, created_at from horai.instance_history
), told as (
    select instance_id, count(seq) as events, count(distinct seq) as numbers, min(seq) as lowest, max(seq) as highest
    from horai.event where instance_id is not null and seq is not null group by instance_id
)
select format('instance %s counts %s events; there are %s, numbered %s to %s', i.id, i.events, coalesce(told.events, 0), told.lowest, told.highest)
    as example, count(*) over () as violations
from instance i left join told on told.instance_id = i.id join horai.job_kept_from kept on kept.job_id = i.job_id
where i.created_at >= kept.since and (
    i.events <> coalesce(told.events, 0) or told.events <> told.numbers or told.lowest <> 1 or told.highest <> i.events)
order by i.id limit $1;

-- name: verify_never_early
-- tenant: platform
-- The times are comparable because nothing changes execute_time while an instance runs; a retry sets the time of the next claim.
select example, count(*) over () as violations from (
    select id, format('instance %s was claimed at %s, before %s', id, claimed_at, greatest(execute_time, due)) as example
    from horai.instance_live where claimed_at < greatest(execute_time, due)
    union all
    select id, format('instance %s is due at %s, before its time %s', id, due, execute_time)
    from horai.instance_live where due < execute_time
    union all
    select id, format('instance %s was claimed at %s, before %s', id, claimed_at, execute_time)
    from horai.instance_history where claimed_at < execute_time
    union all
    select id, format('instance %s was finished at %s, before its claim at %s', id, finished_at, claimed_at)
    from horai.instance_history where finished_at < claimed_at
) found order by id limit $1;

-- name: verify_queue_limit
-- tenant: platform
-- A limited queue, or the pool of a tenant (named *), has as many permits as its limit, not counting retired ones. More may be taken if the limit was lowered, but
-- none of them was taken after that change.
select format('queue %s has a limit of %s, %s slots and %s taken, the last at %s; it was set at %s',
    name, coalesce(max_concurrency::text, 'none'), slots, taken, last_taken, updated_at) as example, count(*) over () as violations
from (
    select queue.id, queue.name, queue.max_concurrency, queue.updated_at, count(slot.n) filter (where not slot.retired) as slots,
        count(slot.instance_id) as taken, max(slot.taken_at) filter (where slot.instance_id is not null) as last_taken
    from horai.queue left join horai.queue_slot slot on slot.queue_id = queue.id
    group by queue.id
) counted
where slots <> coalesce(max_concurrency, 0) or taken > max_concurrency and last_taken > updated_at
order by id limit $1;

-- name: verify_running_has_slot
-- tenant: platform
-- Has a time bound, because a call that has ended may have freed its permit while its row is not settled yet.
select case when owner.is_pool then format('instance %s runs in the queue %s without a slot of its tenant', live.id, queue.name)
    else format('instance %s runs in the limited queue %s without a slot', live.id, queue.name) end as example, count(*) over () as violations
from horai.instance_live live join horai.lane on lane.id = live.lane join horai.queue on queue.id = lane.queue_id
join horai.queue owner on owner.id in (queue.id, queue.pool_id) and owner.max_concurrency is not null
where live.state = 1 and live.node <> 0 and live.claimed_at < clock_timestamp() - $2::interval and not exists (
    select from horai.queue_slot slot where slot.instance_id = live.id and slot.fence = live.fence and slot.queue_id = owner.id)
order by live.id limit $1;

-- name: verify_one_tenant
-- tenant: platform
select format('%s %s of job %s is of tenant %s, the job of %s', what, found.id, found.job_id, found.tenant_id, job.tenant_id) as example,
    count(*) over () as violations
from (
    select 'instance' as what, id, job_id, tenant_id from horai.instance_live
    union all select 'finished instance', id, job_id, tenant_id from horai.instance_history
    union all select 'attempt of instance', instance_id, job_id, tenant_id from horai.attempt
    union all select 'event', id, job_id, tenant_id from horai.event where job_id is not null
    union all select 'dead letter', id, job_id, tenant_id from horai.dead_letter
    union all select 'lane', lane.id, job.id, lane.tenant_id from horai.job join horai.lane on lane.id = job.lane_id
    union all select 'lane of instance', live.id, live.job_id, lane.tenant_id
        from horai.instance_live live join horai.lane on lane.id = live.lane
) found left join horai.job on job.id = found.job_id
where job.tenant_id is distinct from found.tenant_id
order by found.id limit $1;

-- name: verify_dead_has_letter
-- tenant: platform
select example, count(*) over () as violations from (
    select past.id, format('instance %s is DEAD and has no dead letter', past.id) as example
    from horai.instance_history past join horai.job_kept_from kept on kept.job_id = past.job_id
    where past.state = 4 and past.finished_at >= kept.since and not exists (select from horai.dead_letter letter where letter.instance_id = past.id)
    union all
    select letter.instance_id, format('instance %s has a dead letter and is not DEAD', letter.instance_id)
    from horai.dead_letter letter join horai.job_kept_from kept on kept.job_id = letter.job_id
    where letter.created_at >= kept.since
        and not exists (select from horai.instance_history past where past.id = letter.instance_id and past.state = 4)
) found order by id limit $1;

-- name: verify_parked_for_a_reason
-- tenant: platform
-- The parking lane holds BLOCKED instances and those of paused jobs; a job with rows that still have to move is marked. A slot
-- that may not overlap waits there for other instances of its job, or for a decision of the overlap gate within a minute. An instance with
-- a concurrency key waits there while others of its key are in a lane, and at most a minute longer.
select format('instance %s of job %s is %s in the parking lane, and nothing will move it', live.id, live.job_id, horai.state_name(live.state)) as example,
    count(*) over () as violations
from horai.instance_live live join horai.job on job.id = live.job_id
where live.lane = 0 and live.state <> 6 and not job.relane and (job.status = 0 or job.deleted_at is not null)
    and not (live.concurrency_key is not null and job.deleted_at is null and (
        live.updated_at > clock_timestamp() - interval '1 minute' or exists (
            select from horai.instance_live other where other.job_id = live.job_id and other.concurrency_key = live.concurrency_key
                and other.lane <> 0)))
    and not (job.overlap <> 0 and live.slot >= 0 and (live.created_at > clock_timestamp() - interval '1 minute' or exists (
        select from horai.instance_live other where other.job_id = live.job_id and other.key is null and other.lane <> 0)))
order by live.id limit $1;

-- name: verify_lane_known
-- tenant: platform
select format('instance %s waits in lane %s, which does not exist', live.id, live.lane) as example, count(*) over () as violations
from horai.instance_live live
where live.lane <> 0 and not exists (select from horai.lane where lane.id = live.lane)
order by live.id limit $1;

-- name: verify_no_strays
-- tenant: platform
select format('%s of %s is in a default partition', what, at) as example, count(*) over () as violations
from (
    select 'a finished instance' as what, finished_at as at from horai.instance_history_default
    union all select 'an attempt', finished_at from horai.attempt_default
    union all select 'an event', at from horai.event_default
    union all select 'a note', at from horai.note_default
) stray
order by at limit $1;

-- name: verify_slots_held
-- tenant: platform
select format('slot %s of queue %s is held by node %s, which is gone, for instance %s', slot.n, slot.queue_id, slot.node, slot.instance_id)
    as example, count(*) over () as violations
from horai.queue_slot slot
where slot.instance_id is not null and slot.taken_at < clock_timestamp() - $2::interval and not exists (
    select from horai.node where node.incarnation = slot.node and node.rescued_at is null)
order by slot.queue_id, slot.n limit $1;
