-- Reconcilers, their runs, and the instances that a page of a source is compared with. `insert_keyed` creates new instances.

-- name: insert_reconciler
-- tenant: $1
insert into horai.reconciler (tenant_id, job_id, target_id, source) values ($1, $2, $3, $4) returning id;

-- name: bind_reconciler
-- tenant: $1
-- For a reconciler that code declares: its row exists from its first run on.
insert into horai.reconciler (tenant_id, job_id, target_id, source) values ($1, $2, $3, $4)
on conflict (job_id) do update set target_id = excluded.target_id, source = excluded.source;

-- name: list_reconcilers
-- tenant: $1
-- Newest first; reconcilers whose job is deleted are left out.
select r.*, job.name, target.name as target, job.definition, job.status, job.note, job.version, job.updated_at
from horai.reconciler r join horai.job job on job.id = r.job_id join horai.job target on target.id = r.target_id
where r.tenant_id = $1 and r.id < $2 and job.deleted_at is null order by r.id desc limit $3;

-- name: find_reconciler
-- tenant: $1
-- By its id ($2) or its name ($3).
select r.*, job.name, target.name as target, job.definition, job.status, job.note, job.version, job.updated_at
from horai.reconciler r join horai.job job on job.id = r.job_id join horai.job target on target.id = r.target_id
where r.tenant_id = $1 and job.deleted_at is null and (r.id = $2::bigint or job.name = $3::text);

-- name: reconciler_of_job
-- tenant: by job
select r.*, job.name, target.name as target, job.definition, job.status, job.note, job.version, job.updated_at
from horai.reconciler r join horai.job job on job.id = r.job_id join horai.job target on target.id = r.target_id
where r.job_id = $1;

-- name: reconcilers_of_target
-- tenant: by job
-- The reconcilers that watch a job.
select job.name from horai.reconciler r join horai.job job on job.id = r.job_id
where r.target_id = $1 and job.deleted_at is null order by job.name;

-- name: change_source
-- tenant: by reconciler
-- Current runs notice the change by the version of the source.
update horai.reconciler set source = $2, source_version = source_version + 1 where id = $1;

-- name: wipe_source
-- tenant: by reconciler
-- For a reconciler that is being deleted; a current run continues with the source that it has opened.
update horai.reconciler set source = $2 where id = $1;

-- name: last_reports
-- tenant: by reconciler
-- The newest report of each reconciler, with one index probe for each.
select report.* from unnest($1::bigint[]) as wanted(id)
cross join lateral (select * from horai.reconcile_report where reconciler_id = wanted.id order by id desc limit 1) report;

-- name: begin_report
-- tenant: by reconciler
-- Creates the report of the run or takes it over for this attempt. Returns no row if a later attempt has it.
insert into horai.reconcile_report as report (tenant_id, reconciler_id, instance_id, attempt, source_version)
select tenant_id, id, $2, $3, $4 from horai.reconciler where id = $1
on conflict (instance_id) do update set attempt = excluded.attempt where report.attempt <= excluded.attempt
returning *;

-- name: rewind_report
-- tenant: by reconciler
-- For a source that is read from its beginning, with each attempt or because it was changed: the counts of missing and created
-- instances stay, the counts of read rows start again.
update horai.reconcile_report set source_version = $3, cursor = null, is_read = false, pages = 0, found = 0, left_alone = 0, faulty = 0, live = 0
where id = $1 and attempt = $2 and finished_at is null returning *;

-- name: lock_report
-- tenant: by reconciler
-- Locks the report while a page is written. Returns no row if another attempt has the report, the source was changed, or the
-- run is over.
select report.* from horai.reconcile_report report
join horai.reconciler r on r.id = report.reconciler_id and r.source_version = report.source_version
where report.id = $1 and report.attempt = $2 and report.finished_at is null for update of report;

-- name: write_report
-- tenant: by reconciler
update horai.reconcile_report set cursor = $2::text, is_read = $2::text is null, pages = pages + 1, found = $3, missing = $4, created = $5, left_alone = $6, faulty = $7,
    live = live + $8, examples = $9, error = null
where id = $1;

-- name: finish_report
-- tenant: by reconciler
update horai.reconcile_report set finished_at = clock_timestamp(), surplus = $2, examples = $3, error = null where id = $1 returning *;

-- name: fail_report
-- tenant: by instance
update horai.reconcile_report set error = $3 where instance_id = $1 and attempt = $2 and finished_at is null;

-- name: list_reports
-- tenant: by reconciler
-- Newest first.
select * from horai.reconcile_report where reconciler_id = $1 and id < $2 order by id desc limit $3;

-- name: live_keys
-- tenant: by job
-- The keys that have a live instance. Takes no locks: other transactions do not wait for a comparison, nor it for them.
select key, id from horai.instance_live where job_id = $1 and key = any ($2::text[]);

-- name: ends_of_keys
-- tenant: by job
-- The ends of the keys. Runs in a later statement than the one that saw no live row.
select key, bool_or(succeeded) as succeeded, (array_agg(state order by finished_at desc, id desc))[1] as state,
    (array_agg(reason order by finished_at desc, id desc))[1] as reason, max(version) as version, max(fence) as fence
from (
    select key, id, state = 2 as succeeded, state, reason, version, fence, finished_at from horai.instance_history
    where job_id = $1 and key = any ($2::text[]) and finished_at >= (select folded_before from horai.history_fold where id = 1)
    union all
    select key, last_id, succeeded, state, reason, version, fence, finished_at from horai.key_past where job_id = $1 and key = any ($2::text[])
) past group by key;

-- name: note_seen
-- tenant: by reconciler
-- Returns the number of instances that the run had not met before.
with noted as (
    insert into horai.reconcile_seen (tenant_id, report_id, instance_id)
    select report.tenant_id, report.id, met.id from horai.reconcile_report report cross join unnest($2::bigint[]) as met(id) where report.id = $1
    on conflict do nothing returning 1
)
select count(*) from noted;

-- name: count_seen
-- tenant: by reconciler
select count(*) from horai.reconcile_seen where report_id = $1;

-- name: surplus_of
-- tenant: by job
-- Live instances with a key that existed before the run began and that it has not met; the first keys are examples.
with extra as materialized (
    select key from horai.instance_live live where job_id = $1 and key is not null and created_at < $3
        and not exists (select from horai.reconcile_seen seen where seen.report_id = $2 and seen.instance_id = live.id)
)
select (select count(*) from extra) as surplus, array(select key from extra order by key limit $4) as keys;

-- name: forget_seen
-- tenant: by reconciler
delete from horai.reconcile_seen where report_id = $1;

-- name: forget_seen_before
-- tenant: by reconciler
-- For runs before $2 that did not finish and never will.
delete from horai.reconcile_seen seen using horai.reconcile_report report
where seen.report_id = report.id and report.reconciler_id = $1 and report.id < $2
    and not exists (select from horai.instance_live live where live.id = report.instance_id);

-- name: forget_reports
-- tenant: by reconciler
-- Deletes up to $4 reports of a reconciler that are older than its newest $3, oldest first. Keeps reports of unfinished runs.
delete from horai.reconcile_report where id in (
    select id from horai.reconcile_report report
    where reconciler_id = $1 and id < (
        select id from horai.reconcile_report where reconciler_id = $1 and id <= $2 order by id desc offset $3 - 1 limit 1
    ) and not exists (select from horai.instance_live live where live.id = report.instance_id)
    order by id limit $4
);

-- name: wait_at_most
-- tenant: none
-- For this transaction, or its current subtransaction.
select set_config('lock_timeout', $1, true);
