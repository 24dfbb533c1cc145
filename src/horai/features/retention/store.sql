-- Retention: the days of history, the fold of their keys, and rows that are forgotten. The times of a tenant or a job come before those of
-- the process.

-- name: history_days
-- tenant: platform
select clock_timestamp() as now, nullif(fold.folded_before, '-infinity') as folded_before,
    (select min((finished_at at time zone 'UTC')::date) from horai.instance_history_default) as first_stray,
    (select coalesce(json_object_agg(part.parent, part.days), '{}') from (
        select inhparent::regclass::text as parent, json_agg(to_date(substring(relname from '_([0-9]{8})$'), 'YYYYMMDD') order by relname) as days
        from pg_inherits join pg_class on pg_class.oid = inhrelid
        where inhparent in ('horai.instance_history'::regclass, 'horai.attempt'::regclass, 'horai.event'::regclass, 'horai.note'::regclass)
            and relname ~ '_[0-9]{8}$'
        group by 1
    ) part) as days
from horai.history_fold fold;

-- name: stray_days
-- tenant: platform
-- The oldest day of each table with rows in its default partition. A day that is archived is left out: its files have no room for more rows.
with stray as materialized (
    select 'instance_history' as parent, (finished_at at time zone 'UTC')::date as day from horai.instance_history_default
    union select 'attempt', (finished_at at time zone 'UTC')::date from horai.attempt_default
    union select 'event', (at at time zone 'UTC')::date from horai.event_default
    union select 'note', (at at time zone 'UTC')::date from horai.note_default
)
select stray.parent, min(stray.day) as day from stray
where not exists (
    select from horai.archive_partition known where known.table_name = stray.parent and known.day = stray.day and known.archived_at is not null
)
group by stray.parent order by 2, 1;

-- name: adopt_strays
-- tenant: platform
select horai.adopt_strays($1, $2) as moved;

-- name: watch_history_day
-- tenant: platform
select horai.watch_history_day($1);

-- name: fold_history
-- tenant: platform
select horai.fold_history($1, $2, $3, $4) as reached;

-- name: move_fold
-- tenant: platform
-- The past of keys before $1 is read from key_past from now on.
update horai.history_fold set folded_before = $1 where folded_before < $1;

-- name: move_kept_from
-- tenant: platform
update horai.history_fold set kept_from = $1 where kept_from < $1;

-- name: lock_history_day
-- tenant: platform
select horai.lock_history_day($1, $2);

-- name: drop_history_day
-- tenant: platform
select horai.drop_history_day($1, $2) as kept;

-- name: lock_fold
-- tenant: platform
-- Until the end of the transaction, no tenant or job gets other times.
select id from horai.history_fold for no key update;

-- name: own_times
-- tenant: platform
select tenant_id, job_id, keep_history from horai.retention where keep_history is not null order by tenant_id, job_id;

-- name: move_kept_from_of
-- tenant: platform
-- The history of the jobs $1, and of the other jobs of the tenants $2, is complete only from $3 on.
update horai.retention set kept_from = $3
where (job_id <> 0 and job_id = any ($1::bigint[]) or job_id = 0 and tenant_id = any ($2::integer[])) and kept_from < $3;

-- name: forgettable_instances
-- tenant: platform
select ids, oldest from horai.forgettable_instances($1, $2, $3, $4, $5, $6);

-- name: days_of_rows
-- tenant: platform
-- The days on which the instances $1, created since $2, have attempts, events and notes; days from $3 on are not over.
select 'attempt' as parent, (finished_at at time zone 'UTC')::date as day from horai.attempt
where instance_id = any ($1::bigint[]) and finished_at >= $2 and finished_at < $3 group by 2
union all
select 'event', (at at time zone 'UTC')::date from horai.event where instance_id = any ($1::bigint[]) and at >= $2 and at < $3 group by 2
union all
select 'note', (at at time zone 'UTC')::date from horai.note where instance_id = any ($1::bigint[]) and at >= $2 and at < $3 group by 2;

-- name: forget_attempts_of
-- tenant: platform
delete from horai.attempt where instance_id = any ($1::bigint[]) and finished_at >= $2 and finished_at < $3;

-- name: forget_events_of
-- tenant: platform
delete from horai.event where instance_id = any ($1::bigint[]) and at >= $2 and at < $3;

-- name: forget_notes_of
-- tenant: platform
delete from horai.note where instance_id = any ($1::bigint[]) and at >= $2 and at < $3;

-- name: forget_history_of
-- tenant: platform
delete from horai.instance_history where id = any ($1::bigint[]) and finished_at >= $2 and finished_at < $3;

-- name: forget_dead_letters
-- tenant: platform
-- Forgets up to $2 letters that are older than $1. A letter of a tenant or a job with times of its own stays as long as its history.
with gone as (
    delete from horai.dead_letter where id = any (array(
        select letter.id from horai.dead_letter letter
        left join horai.retention own on own.tenant_id = letter.tenant_id and own.job_id = letter.job_id
        left join horai.retention whole on whole.tenant_id = letter.tenant_id and whole.job_id = 0
        where letter.created_at < clock_timestamp() - greatest(coalesce(own.keep_dead_letters, whole.keep_dead_letters, $1::interval),
                coalesce(own.keep_history, whole.keep_history))
            and (coalesce(own.job_id, whole.job_id) is null or letter.created_at < horai.kept_from(letter.tenant_id, letter.job_id))
        order by letter.created_at limit $2)) returning id
)
select count(*) from gone;

-- name: forget_skips
-- tenant: platform
-- A skipped slot is kept as long as history of that time: without it, the slot would look lost. One of a whole schedule stays for all of its jobs.
with bound as materialized (
    select job.schedule_id, min(kept.since) as since from horai.retention own
    join horai.job on job.tenant_id = own.tenant_id and own.job_id in (0, job.id) and job.schedule_id is not null
    join horai.job_kept_from kept on kept.job_id = job.id
    group by job.schedule_id
), gone as (
    delete from horai.skip where id = any (array(
        select skip.id from horai.skip cross join horai.history_fold fold
        left join horai.job on job.id = skip.job_id
        left join horai.retention own on own.tenant_id = job.tenant_id and own.job_id = job.id
        left join horai.retention whole on whole.tenant_id = job.tenant_id and whole.job_id = 0
        left join bound on skip.job_id is null and bound.schedule_id = skip.schedule_id
        where skip.at < clock_timestamp() - coalesce(own.keep_history, whole.keep_history, $1::interval)
            and skip.to_time < case when skip.job_id is null then least(bound.since, fold.kept_from)
                when coalesce(own.job_id, whole.job_id) is null then fold.kept_from
                else horai.kept_from(job.tenant_id, job.id) end
        order by skip.id limit $2)) returning id
)
select count(*) from gone;

-- name: forget_source_events
-- tenant: platform
with gone as (
    delete from horai.source_event where ctid = any (array(
        select ctid from horai.source_event where at < clock_timestamp() - $1::interval limit $2)) returning job_id
)
select count(*) from gone;

-- name: forget_workflow_runs
-- tenant: platform
-- Forgets up to $2 runs that ended longer than $1 ago and whose instances have left history.
with old as materialized (
    select run.id from horai.workflow_run run join horai.workflow on workflow.id = run.workflow_id
        left join horai.retention own on own.tenant_id = workflow.tenant_id and own.job_id = 0
    where run.finished_at < clock_timestamp() - coalesce(own.keep_history, $1::interval)
        and not exists (select from horai.workflow_node node join horai.instance_history past on past.id = node.instance_id where node.run_id = run.id)
        and not exists (select from horai.workflow_node node join horai.instance_live live on live.id = node.instance_id where node.run_id = run.id)
        and not exists (select from horai.workflow_item item join horai.instance_history past on past.id = item.instance_id where item.run_id = run.id)
        and not exists (select from horai.workflow_item item join horai.instance_live live on live.id = item.instance_id where item.run_id = run.id)
    order by run.id limit $2
), items as (
    delete from horai.workflow_item where run_id = any (array(select id from old))
), nodes as (
    delete from horai.workflow_node where run_id = any (array(select id from old))
), gone as (
    delete from horai.workflow_run where id = any (array(select id from old)) returning id
)
select count(*) from gone;

-- name: forget_reconcile_reports
-- tenant: platform
-- Keeps the last report of each reconciler.
with old as materialized (
    select report.id from horai.reconcile_report report join horai.reconciler on reconciler.id = report.reconciler_id
        left join horai.retention own on own.tenant_id = reconciler.tenant_id and own.job_id = 0
    where report.finished_at < clock_timestamp() - coalesce(own.keep_history, $1::interval)
        and exists (select from horai.reconcile_report later where later.reconciler_id = report.reconciler_id and later.id > report.id)
    order by report.id limit $2
), seen as (
    delete from horai.reconcile_seen where report_id = any (array(select id from old))
), gone as (
    delete from horai.reconcile_report where id = any (array(select id from old)) returning id
)
select count(*) from gone;

-- name: forget_keys_of_deleted_jobs
-- tenant: platform
-- A deleted job gets no more puts: its keys cannot return.
with gone as (
    delete from horai.key_past where ctid = any (array(
        select past.ctid from horai.key_past past join horai.job on job.id = past.job_id
        where job.deleted_at < clock_timestamp() - $1::interval limit $2)) returning job_id
)
select count(*) from gone;

-- name: forget_backfills
-- tenant: platform
-- Forgets up to $2 backfills that ended longer than $1 ago. A repeated request finds its backfill for a week at least, as others do.
with gone as (
    delete from horai.backfill where id = any (array(
        select backfill.id from horai.backfill left join horai.retention own on own.tenant_id = backfill.tenant_id and own.job_id = 0
        where backfill.finished_at < clock_timestamp() - greatest(coalesce(own.keep_history, $1::interval), interval '7 days')
            and not exists (select from horai.backfill_instance part where part.backfill_id = backfill.id)
        order by backfill.id limit $2)) returning id
)
select count(*) from gone;

-- name: forget_parked_events
-- tenant: platform
with gone as (
    delete from horai.parked_event where id = any (array(
        select parked.id from horai.parked_event parked left join horai.retention own on own.tenant_id = parked.tenant_id and own.job_id = 0
        where parked.at < clock_timestamp() - coalesce(own.keep_dead_letters, $1::interval)
        order by parked.id limit $2)) returning id
)
select count(*) from gone;
