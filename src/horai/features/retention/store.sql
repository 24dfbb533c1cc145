-- Retention: the days of history, the fold of their keys, and rows that are forgotten.

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

-- name: forget_dead_letters
-- tenant: platform
-- Forgets up to $2 letters that are older than $1.
with gone as (
    delete from horai.dead_letter where id = any (array(
        select id from horai.dead_letter where created_at < clock_timestamp() - $1::interval order by created_at limit $2)) returning id
)
select count(*) from gone;

-- name: forget_skips
-- tenant: platform
with gone as (
    delete from horai.skip where id = any (array(
        select id from horai.skip where at < clock_timestamp() - $1::interval order by id limit $2)) returning id
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
    select id from horai.workflow_run run where finished_at < clock_timestamp() - $1::interval
        and not exists (select from horai.workflow_node node join horai.instance_history past on past.id = node.instance_id where node.run_id = run.id)
        and not exists (select from horai.workflow_node node join horai.instance_live live on live.id = node.instance_id where node.run_id = run.id)
    order by id limit $2
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
    select id from horai.reconcile_report report where finished_at < clock_timestamp() - $1::interval
        and exists (select from horai.reconcile_report later where later.reconciler_id = report.reconciler_id and later.id > report.id)
    order by id limit $2
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
