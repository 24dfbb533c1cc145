-- The life of a claim. Every write to a claimed row is guarded by state, attempt, fence and incarnation.
-- Batches skip rows that another transaction has locked, and the caller retries those; only finish_if_running waits, at most
-- 20 ms (decision 0010).
-- `live.id = any (array[report.id])` means `live.id = report.id` but leaves the planner one choice: from the reports to the rows
-- by the primary key. With `=` the planner may read the whole table and use a hash join, and it does so if the table was small
-- when the plan was made. For the same reason rows are locked in the order of `report.id`, not of `live.id` (decision 0024).

-- name: claim_due
-- tenant: platform
-- moves: INIT | FAIL -> RUNNING
-- $1 incarnation, $2 claim id, $3 shards, $4 lanes, $5 and $6 each scan's cursor (due, id), $7 rows of each scan.
-- The lock on the node row orders a claim against the fencing of its node: a fenced node claims nothing, and the rescue sees
-- every earlier claim. statement_timestamp() can be an index condition; clock_timestamp() would read every future row.
-- Skips lanes of queues that have a limit or are paused, and instances that have expired: the expirer cancels those. Does not return large payloads: the dispatcher reads one when it
-- runs the instance. A running instance has no error: the error of an earlier attempt is in its attempt row.
with me as materialized (
    select from horai.node where incarnation = $1 and fenced_at is null and stopped_at is null for key share
), picked as materialized (
    select due.id
    from unnest($3::smallint[], $4::integer[], $5::timestamptz[], $6::bigint[], $7::integer[]) as scan(shard, lane, due, id, rows)
    cross join lateral (
        select live.id from horai.instance_live live
        where live.shard = scan.shard and live.lane = scan.lane and live.state in (0, 3)
            and (live.due, live.id) > (scan.due, scan.id) and live.due <= statement_timestamp()
            and (live.expires_at is null or live.expires_at > statement_timestamp())
        order by live.due, live.id limit scan.rows
        for update skip locked
    ) due
    where exists (select from me) and scan.lane = any (array(select unnest(horai.open_lanes($4::integer[]))))
)
update horai.instance_live claimed
set state = 1, attempt = claimed.attempt + 1, fence = claimed.fence + 1, node = $1, claim = $2,
    error_code = null, error_msg = null, claimed_at = clock_timestamp(), updated_at = clock_timestamp()
where claimed.id = any (array(select id from picked))
returning claimed.id, claimed.job_id, claimed.lane, claimed.due, claimed.attempt, claimed.fence, claimed.retry_count, claimed.slot,
    claimed.key, claimed.fire_time, nullif(claimed.execute_time, claimed.fire_time) as execute_time,
    nullif(claimed.born_for, claimed.fire_time) as born_for,
    case when not horai.is_large(claimed.payload) then claimed.payload end as payload,
    horai.is_large(claimed.payload) as has_large_payload, claimed.lost;

-- name: payload_of
-- tenant: platform
-- Returns a payload that was too large for claim_due to return; no row if the claim has ended.
select payload from horai.instance_live where id = $1 and fence = $2 and node = $3 and state = 1;

-- name: next_due
-- tenant: platform
-- Returns the due times of the first $5 claimable rows of each scan, after its cursor; no row for a scan without any.
select scan.shard, scan.lane, ahead.due
from unnest($1::smallint[], $2::integer[], $3::timestamptz[], $4::bigint[]) as scan(shard, lane, due, id)
cross join lateral (
    select array(
        select live.due from horai.instance_live live
        where live.shard = scan.shard and live.lane = scan.lane and live.state in (0, 3) and (live.due, live.id) > (scan.due, scan.id)
            and (live.expires_at is null or live.expires_at > statement_timestamp())
        order by live.due, live.id limit $5
    ) as due
) ahead
where ahead.due <> '{}';

-- name: shut_rows_ahead
-- tenant: platform
-- Returns, for each scan, the last of the due rows that follow its cursor without a gap and belong to the jobs $5, of which no
-- call may begin; no row if the first due row is of another job. Reads at most `most` rows of a scan: `passed` = `most` means that
-- more such rows may follow.
select scan.shard, scan.lane, ahead.due, ahead.id, ahead.passed
from unnest($1::smallint[], $2::integer[], $3::timestamptz[], $4::bigint[], $6::integer[]) as scan(shard, lane, due, id, most)
cross join lateral (
    select run.due, run.id, run.passed from (
        select head.due, head.id, row_number() over in_order as passed,
            bool_and(head.job_id = any ($5::bigint[])) over in_order as is_shut
        from (
            select live.due, live.id, live.job_id from horai.instance_live live
            where live.shard = scan.shard and live.lane = scan.lane and live.state in (0, 3)
                and live.due <= statement_timestamp() and (live.due, live.id) > (scan.due, scan.id)
            order by live.due, live.id limit scan.most
        ) head window in_order as (order by head.due, head.id)
    ) run
    where run.is_shut order by run.passed desc limit 1
) ahead;

-- name: left_behind
-- tenant: platform
-- Returns rows that a claimer's cursors may have passed: due rows that are not claimed, after each scan's start, and with $5 the
-- running rows of this node, which the node may not know. One page of $6 rows per scan.
select scan.shard, scan.lane, row.*
from unnest($1::smallint[], $2::integer[], $3::timestamptz[], $4::bigint[]) as scan(shard, lane, due, id)
cross join lateral (
    select live.due, live.id, live.state, live.job_id, live.attempt, live.fence, live.node, live.retry_count, live.claim, live.concurrency_key
    from horai.instance_live live
    where live.shard = scan.shard and live.lane = scan.lane and (live.due, live.id) > (scan.due, scan.id)
        and live.due <= statement_timestamp() and (live.state in (0, 3) and (live.expires_at is null or live.expires_at > statement_timestamp()) or live.state = 1 and live.node = $5)
    order by live.due, live.id limit $6
) row;

-- name: finish_if_running
-- tenant: platform
-- moves: RUNNING -> SUCCESS
-- Moves rows to history once; the history row is the INSTANCE_DONE event. A late report has an old fence and matches no row.
-- The settler uses this statement for the common case, claims of one node ($4). It takes no locks first, so it waits for a row
-- that another transaction has locked, up to its short lock_timeout. Arrays are passed as text: the driver needs twice as long
-- to encode a list.
with done as (
    delete from horai.instance_live live
    using unnest($1::text::bigint[], $2::text::integer[], $3::text::bigint[], $5::json[]) as report(id, attempt, fence, result)
    where live.id = any (array[report.id]) and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = $4
    returning live.*, report.result
)
insert into horai.instance_history ({{carried}}, finished_at, retry_count, events, state, result)
select {{carried}}, clock_timestamp(), retry_count, events, 2, result
from done
returning id;

-- name: finish_if_free
-- tenant: by instance
-- moves: RUNNING -> SUCCESS
-- The same for a batch of several nodes; skips rows that another transaction has locked.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::json[]) as r(id, attempt, fence, node, result)
), held as materialized (
    select live.id, report.result from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    order by report.id for update of live skip locked
), done as (
    delete from horai.instance_live live using held where live.id = any (array[held.id]) returning live.*, held.result
)
insert into horai.instance_history ({{carried}}, finished_at, retry_count, events, state, result)
select {{carried}}, clock_timestamp(), retry_count, events, 2, result
from done
returning id;

-- name: fail_if_running
-- tenant: by instance
-- moves: RUNNING -> FAIL
-- Counts a failure, or a loss if $8 is true, and plans the retry by the database clock. Writes the attempt row and the event.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::interval[], $6::text[], $7::text[], $8::boolean[])
        as r(id, attempt, fence, node, delay, code, message, is_loss)
), held as materialized (
    select live.id, live.node, live.claimed_at, report.code, report.message, report.is_loss, clock_timestamp() + report.delay as again_at from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    order by report.id for update of live skip locked
), failed as (
    update horai.instance_live live
    set state = 3, retry_count = live.retry_count + (not held.is_loss)::int, lost = live.lost + held.is_loss::int,
        execute_time = held.again_at, due = held.again_at, events = live.events + 1,
        error_code = held.code, error_msg = held.message, node = null, claim = null, claimed_at = null, updated_at = clock_timestamp(),
        expires_at = case when live.expires_at is not null and not exists (select from horai.step done where done.instance_id = live.id) then live.expires_at end
    from held where live.id = any (array[held.id])
    returning live.*, held.node as held_by, held.claimed_at as started_at, held.is_loss
), tried as (
    insert into horai.attempt (instance_id, job_id, tenant_id, attempt, fence, node, started_at, finished_at, outcome, error_code, error_msg)
    select id, job_id, tenant_id, attempt, fence, held_by, started_at, clock_timestamp(),
        case when is_loss then 'LOST' else 'FAIL' end, error_code, error_msg from failed
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events, case when is_loss then 'INSTANCE_LOST' else 'INSTANCE_FAILED' end,
        json_build_object('idemKey', horai.idem_key(job_id, born_for, slot), 'attempt', attempt, 'retryCount', retry_count,
            'lostCount', lost, 'errorCode', error_code, 'executeTime', execute_time) from failed
)
select id, lane, due from failed;

-- name: bury_if_running
-- tenant: by instance
-- moves: RUNNING -> DEAD
-- Moves rows to history with their dead letter, attempt row and event. If $9 is true, the attempt was a loss, not a failure.
with report as (
    select id, attempt, fence, node, code, message, string_to_array(tags, ',') as tags, fingerprint, is_loss
    from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[])
        as r(id, attempt, fence, node, code, message, tags, fingerprint, is_loss)
), held as materialized (
    select live.id, report.code, report.message, report.tags, report.is_loss, report.fingerprint from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    order by report.id for update of live skip locked
), gone as (
    delete from horai.instance_live live using held where live.id = any (array[held.id])
    returning live.*, held.code, held.message, held.tags, held.fingerprint, held.is_loss, live.retry_count + (not held.is_loss)::int as failures
), kept as (
    insert into horai.instance_history ({{carried}}, finished_at, retry_count, events, state, error_code, error_msg)
    select {{carried}}, clock_timestamp(), failures, events + 1, 4, code, message
    from gone
), tried as (
    insert into horai.attempt (instance_id, job_id, tenant_id, attempt, fence, node, started_at, finished_at, outcome, error_code, error_msg)
    select id, job_id, tenant_id, attempt, fence, node, claimed_at, clock_timestamp(),
        case when is_loss then 'LOST' else 'DEAD' end, code, message from gone
), lettered as (
    insert into horai.dead_letter (tenant_id, job_id, instance_id, error_code, error_msg, tags, fingerprint)
    select tenant_id, job_id, id, code, message, tags, fingerprint from gone
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events + 1, 'INSTANCE_DEAD',
        json_build_object('idemKey', horai.idem_key(job_id, born_for, slot), 'attempt', attempt, 'retryCount', failures,
            'lostCount', lost + is_loss::int, 'errorCode', code, 'tags', tags) from gone
)
select id from gone;

-- name: release_if_running
-- tenant: by instance
-- moves: RUNNING -> INIT
-- Nothing was sent, or the handler asked to run later: no failure is counted. $6: true if the user asked for the delay, which
-- then moves execute_time; false if Horai did: no call was started, and no attempt counts. A call that has left a note was started.
-- $7: true for a built-in handler that waits for something; it writes no event.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::interval[], $6::boolean[], $7::boolean[])
        as r(id, attempt, fence, node, delay, postponed, quiet)
), held as materialized (
    select live.id, clock_timestamp() + report.delay as again_at, report.postponed, report.quiet, report.postponed or exists (
        select from horai.note said where said.instance_id = live.id and said.fence = live.fence) as is_attempt
    from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    order by report.id for update of live skip locked
), released as (
    update horai.instance_live live
    set state = 0, due = held.again_at, execute_time = case when held.postponed then held.again_at else live.execute_time end,
        attempt = live.attempt - (not held.is_attempt)::integer,
        events = live.events + (not held.quiet)::integer, node = null, claim = null, claimed_at = null, updated_at = clock_timestamp(),
        expires_at = case when live.expires_at is not null and not exists (select from horai.step done where done.instance_id = live.id) then live.expires_at end
    from held where live.id = any (array[held.id])
    returning live.*, held.quiet, live.attempt + (not held.is_attempt)::integer as released_attempt
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events, 'INSTANCE_RELEASED', json_build_object('idemKey', horai.idem_key(job_id, born_for, slot), 'attempt', released_attempt, 'due', due)
    from released where not quiet
)
select id, lane, due from released;

-- name: hold_running
-- tenant: by instance
-- Locks claimed rows before they are suspended: a signal that was sent before is then visible to the next statement, and a later one
-- waits. Skips rows that another transaction has locked.
select live.id from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) as claim(id, attempt, fence, node)
join horai.instance_live live on live.id = any (array[claim.id])
    and live.state = 1 and live.attempt = claim.attempt and live.fence = claim.fence and live.node = claim.node
order by claim.id for update of live skip locked;

-- name: suspend_if_running
-- tenant: by instance
-- moves: RUNNING -> INIT
-- A function has suspended itself until $5: neither a failure nor an attempt is counted, and it no longer expires. The rows are held ($6). Without
-- a time it looks again after a year. A signal that an open wait of the instance asks for makes it due at once, and so do the end of a child that
-- it has called, once, and a cancel with compensation that came during this claim. `due` is never written in the past.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::timestamptz[]) as r(id, attempt, fence, node, until)
    where id = any ($6::bigint[])
), heard as (
    update horai.child_call call set is_open = false from report
    where call.parent_id = report.id and call.is_open and not exists (select from horai.instance_live child where child.id = call.child_id)
    returning call.parent_id
), held as materialized (
    select live.id, case when exists (select from heard where heard.parent_id = report.id) or exists (
        select from horai.step asked join horai.step_signal sent on sent.instance_id = asked.instance_id and sent.name = asked.name
        where asked.instance_id = report.id and asked.kind = 3 and asked.progress = 0 and sent.consumed_at is null
    ) or exists (
        select from horai.step mark where mark.instance_id = report.id and mark.kind = 5 and mark.fence = report.fence
    ) then clock_timestamp() else greatest(coalesce(report.until, clock_timestamp() + interval '365 days'), clock_timestamp()) end as again_at
    from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    order by report.id for update of live skip locked
), suspended as (
    update horai.instance_live live
    set state = 0, due = held.again_at, execute_time = held.again_at, suspended_until = held.again_at, attempt = live.attempt - 1,
        events = live.events + 1, node = null, claim = null, claimed_at = null, expires_at = null, updated_at = clock_timestamp()
    from held where live.id = any (array[held.id])
    returning live.*
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events, 'INSTANCE_RELEASED', json_build_object('idemKey', horai.idem_key(job_id, born_for, slot),
        'attempt', attempt + 1, 'due', due, 'suspendedUntil', suspended_until)
    from suspended
)
select id, lane, due from suspended;

-- name: park_if_running
-- tenant: platform
-- moves: RUNNING -> INIT
-- Moves claimed rows of a paused job to the parking lane. The lock on the job row orders this against its resume: either the
-- resume moves these rows back, or the job is already active and the rows are not parked. No call was started: no attempt counts.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) as r(id, attempt, fence, node)
), held as materialized (
    select live.id from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    join horai.job on job.id = any (array[live.job_id]) and job.status = 1
    order by report.id for update of live skip locked for key share of job
), parked as (
    update horai.instance_live live
    set state = 0, lane = 0, attempt = live.attempt - 1, events = live.events + 1, node = null, claim = null, claimed_at = null, updated_at = clock_timestamp()
    from held where live.id = any (array[held.id])
    returning live.*
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events, 'INSTANCE_HELD', json_build_object('idemKey', horai.idem_key(job_id, born_for, slot), 'reason', 'JOB_PAUSED', 'attempt', attempt + 1) from parked
)
select id from parked;

-- name: cancel_if_running
-- tenant: by instance
-- moves: RUNNING -> CANCELLED
-- Ends claimed rows with the reason $5, by name $6: their job was deleted and nothing was sent, or their cancel has been compensated.
with report as (
    select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) as r(id, attempt, fence, node)
), held as materialized (
    select live.id from report
    join horai.instance_live live on live.id = any (array[report.id])
        and live.state = 1 and live.attempt = report.attempt and live.fence = report.fence and live.node = report.node
    order by report.id for update of live skip locked
), gone as (
    delete from horai.instance_live live using held where live.id = any (array[held.id]) returning live.*
), kept as (
    insert into horai.instance_history ({{carried}}, finished_at, retry_count, events, state, reason, error_code, error_msg)
    select {{carried}}, clock_timestamp(), retry_count, events + 1, 5, $5::smallint, error_code, error_msg
    from gone
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, seq, kind, data)
    select tenant_id, job_id, id, events + 1, 'INSTANCE_CANCELLED', json_build_object('idemKey', horai.idem_key(job_id, born_for, slot), 'reason', $6::text) from gone
)
select id from gone;

-- name: still_running
-- tenant: platform
-- Returns rows that a batch skipped but that their node still holds: another transaction has locked them, and the caller retries.
select live.id from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) as held(id, attempt, fence, node)
join horai.instance_live live on live.id = any (array[held.id])
    and live.state = 1 and live.attempt = held.attempt and live.fence = held.fence and live.node = held.node;

-- name: ended_claims
-- tenant: platform
-- Returns the claims that have ended: settled, cancelled, replaced or rescued. Their node no longer decides their outcome.
select held.id, held.fence from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) as held(id, attempt, fence, node)
where not exists (
    select from horai.instance_live live
    where live.id = any (array[held.id]) and live.state = 1 and live.attempt = held.attempt and live.fence = held.fence and live.node = held.node);

-- name: is_awaited
-- tenant: platform
-- Returns whether an accepted call may still be in progress: it runs, or it was cancelled, which does not stop a call that
-- was sent.
select exists (select from horai.instance_live where id = $1 and attempt = $2 and fence = $3 and node = $4 and state = 1)
    or exists (select from horai.instance_history where id = $1 and fence = $3 and state = 5) as awaited;

-- name: lock_instance
-- tenant: by instance
-- Waits for one row up to lock_timeout; the batch statements never wait.
select id from horai.instance_live where id = $1 for update;

-- name: keep_late
-- tenant: by instance
-- Records an outcome whose claim has ended as a late attempt, once. An outcome is not late if it is already recorded: when the
-- answer to a COMMIT was lost, the same outcome of this attempt and fence is in the database.
with report as (
    select r.*, job.tenant_id
    from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[], $9::text[])
        as r(id, job_id, attempt, fence, node, started_at, outcome, code, message)
    join horai.job on job.id = any (array[r.job_id])
), late as (
    insert into horai.attempt (instance_id, job_id, tenant_id, attempt, fence, node, started_at, finished_at, late, outcome, error_code, error_msg)
    select id, job_id, tenant_id, attempt, fence, node, started_at, clock_timestamp(), true, outcome, code, message from report
    where not exists (
        select from horai.instance_history h
        where h.id = any (array[report.id]) and h.attempt = report.attempt and h.fence = report.fence
            and (h.state = 2 and report.outcome = 'SUCCESS' or h.state = 4 and h.error_code = report.code)
    ) and not exists (
        select from horai.attempt a
        where a.instance_id = any (array[report.id]) and a.attempt = report.attempt and a.fence = report.fence
            and (a.late or a.error_code = report.code)
    )
    returning *
), told as (
    insert into horai.event (tenant_id, job_id, instance_id, kind, data)
    select tenant_id, job_id, instance_id, 'INSTANCE_LATE_RESULT',
        json_build_object('attempt', attempt, 'fence', fence, 'outcome', outcome, 'errorCode', error_code) from late
)
select instance_id from late;

-- name: running_by_fence
-- tenant: $1
-- Returns the claim of an outcome that is reported from outside; the fence proves that the report may settle it. An instance
-- that waits for its workflow run (node 0) ends only with that run.
select id, job_id, attempt, fence, node, retry_count, claimed_at from horai.instance_live
where tenant_id = $1 and id = $2 and fence = $3 and state = 1 and node <> 0;

-- name: running_of_node
-- tenant: platform
-- Returns a page of the claims of a node, by primary key: a rescue reads the table once and continues after rows that it cannot
-- take.
select id, job_id, attempt, fence, node, retry_count, claimed_at, claim, lost, born_for, slot, concurrency_key
from horai.instance_live
where id > $2 and state = 1 and node = $1
order by id limit $3;
