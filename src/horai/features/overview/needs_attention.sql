-- Conditions that may need attention. Every statement uses an index and reads a bounded number of rows.

-- name: dying_jobs
-- tenant: $1
-- Jobs with open dead letters since $2, those with the most first; among equals, the latest.
select letter.job_id, job.name as job, count(*) as instances, max(letter.created_at) as last_at,
    (array_agg(letter.error_code order by letter.created_at desc))[1] as error_code
from (
    select job_id, created_at, error_code from horai.dead_letter
    where tenant_id = $1 and replay_status = 'NEW' and created_at >= $2 order by created_at desc limit 10000
) letter
join horai.job on job.id = letter.job_id
group by letter.job_id, job.name order by instances desc, last_at desc, letter.job_id limit $3;

-- name: failing_jobs
-- tenant: $1
-- Jobs whose instances have failed or were lost and are retried; only the 10,000 newest of these instances are read.
select retried.job_id, job.name as job, count(*) as instances, max(retried.updated_at) as last_at,
    (array_agg(retried.error_code order by retried.updated_at desc) filter (where retried.error_code is not null))[1] as error_code
from (
    select job_id, updated_at, error_code from horai.instance_live
    where tenant_id = $1 and (retry_count > 0 or lost > 0) order by fire_time desc, id desc limit 10000
) retried
join horai.job on job.id = retried.job_id
group by retried.job_id, job.name order by instances desc, last_at desc, retried.job_id limit $2;

-- name: late_instances
-- tenant: $1
-- Instances due before $2 and not claimed, among the 10,000 oldest live instances. A paused job or queue holds its instances
-- on purpose: they are not late, and the pause is listed separately. So are the full queues $3, which say why their instances wait.
with late as materialized (
    select id, job_id, key, due from (
        select id, job_id, key, due, state, lane, fire_time from horai.instance_live
        where tenant_id = $1 and fire_time < $2 order by fire_time, id limit 10000
    ) oldest
    where state in (0, 3) and lane <> 0 and due < $2 and not exists (
        select from horai.lane join horai.queue on queue.id = lane.queue_id where lane.id = oldest.lane
            and (queue.paused or queue.held or queue.id = any ($3::integer[]))
    )
)
select late.id, late.job_id, job.name as job, late.key, late.due, (select count(*) from late) as instances
from late join horai.job on job.id = late.job_id
order by late.due, late.id limit $4;

-- name: paused_jobs
-- tenant: $1
-- The $2 jobs that were paused last, among the first $3 paused jobs; the number of these; and how many due instances each holds, among
-- its first 1,001 instances of the past.
select last.id, last.name, last.note, last.paused_at, last.jobs, held.waiting, held.is_more
from (
    select id, name, note, paused_at, count(*) over () as jobs from (
        select id, name, note, paused_at from horai.job
        where tenant_id = $1 and status = 1 and deleted_at is null and ticks_for is null order by id limit $3
    ) paused
    order by paused_at desc nulls last, id limit $2
) last
cross join lateral (
    select count(*) filter (where state in (0, 3)) as waiting, count(*) > 1000 as is_more from (
        select live.state from horai.instance_live live
        where live.job_id = last.id and live.fire_time <= statement_timestamp() limit 1001
    ) past
) held
order by last.paused_at desc nulls last, last.id;

-- name: paused_queues
-- tenant: $1
select id, name, updated_at, note from horai.queue where tenant_id = $1 and paused order by name limit $2;

-- name: backfills_under_way
-- tenant: $1
select backfill.id, backfill.job_id, job.name as job, backfill.status, backfill.total, backfill.made,
    backfill.succeeded + backfill.failed + backfill.cancelled as ended, backfill.created_at
from horai.backfill join horai.job on job.id = backfill.job_id
where backfill.tenant_id = $1 and backfill.finished_at is null order by backfill.id desc limit $2;

-- name: drifting_reconcilers
-- tenant: $1
-- Reconcilers whose last report has findings or an error.
select reconciler.id, job.name, report.id as report_id, report.started_at, report.missing, report.created, report.surplus, report.faulty, report.error
from (select * from horai.reconciler where tenant_id = $1 order by id limit 500) reconciler
join horai.job on job.id = reconciler.job_id and job.deleted_at is null
cross join lateral (
    select * from horai.reconcile_report last where last.reconciler_id = reconciler.id order by last.id desc limit 1
) report
where report.missing > report.created or report.surplus > 0 or report.faulty > 0 or report.error is not null
order by report.id desc limit $2;

-- name: failing_channels
-- tenant: $1
-- Alert channels that have refused a message since before $2, or whose last message was given up.
select channel.name, channel.kind, failed.status, failed.attempt, failed.http_status, failed.error, failed.created_at as since
from horai.alert_channel channel
cross join lateral (
    select * from (
        (select 1 as rank, * from horai.alert_delivery retried
        where retried.channel_id = channel.id and retried.status = 'PENDING' and retried.error is not null and retried.created_at < $2
        order by retried.created_at limit 1)
        union all
        (select 2, last.* from (
            select * from horai.alert_delivery past where past.channel_id = channel.id and past.finished_at is not null order by past.id desc limit 1
        ) last where last.status = 'FAILED')
    ) either order by rank limit 1
) failed
where channel.tenant_id = $1 order by since, channel.name limit $3;

-- name: parked_sinks
-- tenant: $1
select name, kind, failures, failing_since, last_error from horai.sink where status = 'PARKED' and tenant_id = $1 order by failing_since, name limit $2;

-- name: refreshes
-- tenant: $1
-- Refresh jobs, each with its oldest entities: the one whose last run ended first, and the first one that never ran.
select job.id, job.name, job.definition -> 'refresh' ->> 'window' as refresh_window, (
    select entity.fresh_at from horai.entity where entity.job_id = job.id and entity.fresh_at is not null
    order by entity.fresh_at, entity.id limit 1
) as oldest_run, (
    select entity.create_time from horai.entity where entity.job_id = job.id and entity.fresh_at is null order by entity.id limit 1
) as never_run_since
from horai.job ticks join horai.job on job.id = ticks.ticks_for and job.deleted_at is null and job.status = 0
where ticks.ticks_for is not null and ticks.deleted_at is null and ticks.tenant_id = $1
order by job.id limit $2;
