-- Name the tenant in every row that belongs to one, so that row-level security can compare it (docs/decisions/0038).
-- Rows whose job or instance is gone get the first tenant: a database of an earlier version has served no other.

create function pg_temp.tenant_of_job(bigint) returns integer language sql stable as $$
    select coalesce((select tenant_id from horai.job where id = $1), (select min(id) from horai.tenant))
$$;
create function pg_temp.tenant_of_instance(bigint) returns integer language sql stable as $$
    select coalesce(
        (select tenant_id from horai.instance_live where id = $1),
        (select tenant_id from horai.instance_history where id = $1 limit 1),
        (select min(id) from horai.tenant))
$$;

-- Null where the slots of every job of the schedule were skipped.
alter table horai.skip add column tenant_id integer;
update horai.skip set tenant_id = pg_temp.tenant_of_job(job_id) where job_id is not null;
alter table horai.skip add constraint skip_of_a_job_names_its_tenant check ((tenant_id is null) = (job_id is null));

alter table horai.catchup add column tenant_id integer;
update horai.catchup set tenant_id = pg_temp.tenant_of_job(job_id);
alter table horai.catchup alter column tenant_id set not null;

alter table horai.queue_slot add column tenant_id integer;
update horai.queue_slot slot set tenant_id = queue.tenant_id from horai.queue where queue.id = slot.queue_id;
alter table horai.queue_slot alter column tenant_id set not null;

alter table horai.note add column tenant_id integer;
update horai.note set tenant_id = pg_temp.tenant_of_instance(instance_id);
alter table horai.note alter column tenant_id set not null;

alter table horai.backfill_instance add column tenant_id integer;
update horai.backfill_instance made set tenant_id = backfill.tenant_id from horai.backfill where backfill.id = made.backfill_id;
alter table horai.backfill_instance alter column tenant_id set not null;

alter table horai.source_event add column tenant_id integer;
update horai.source_event set tenant_id = pg_temp.tenant_of_job(job_id);
alter table horai.source_event alter column tenant_id set not null;

alter table horai.workflow_job add column tenant_id integer;
update horai.workflow_job part set tenant_id = workflow.tenant_id from horai.workflow where workflow.id = part.workflow_id;
alter table horai.workflow_job alter column tenant_id set not null;

alter table horai.workflow_run add column tenant_id integer;
update horai.workflow_run run set tenant_id = workflow.tenant_id from horai.workflow where workflow.id = run.workflow_id;
alter table horai.workflow_run alter column tenant_id set not null;

alter table horai.workflow_node add column tenant_id integer;
update horai.workflow_node node set tenant_id = run.tenant_id from horai.workflow_run run where run.id = node.run_id;
alter table horai.workflow_node alter column tenant_id set not null;

alter table horai.entity add column tenant_id integer;
update horai.entity set tenant_id = pg_temp.tenant_of_job(job_id);
alter table horai.entity alter column tenant_id set not null;

alter table horai.refresh_batch add column tenant_id integer;
update horai.refresh_batch set tenant_id = pg_temp.tenant_of_job(job_id);
alter table horai.refresh_batch alter column tenant_id set not null;

alter table horai.reconcile_report add column tenant_id integer;
update horai.reconcile_report report set tenant_id = reconciler.tenant_id from horai.reconciler where reconciler.id = report.reconciler_id;
alter table horai.reconcile_report alter column tenant_id set not null;

alter table horai.reconcile_seen add column tenant_id integer;
update horai.reconcile_seen seen set tenant_id = report.tenant_id from horai.reconcile_report report where report.id = seen.report_id;
delete from horai.reconcile_seen where tenant_id is null;
alter table horai.reconcile_seen alter column tenant_id set not null;

create or replace function horai.keep_entities(place horai.wish, keys text[], payloads json[]) returns integer
language plpgsql as $$
declare
    runs_on_add boolean;
    added text[];
begin
    select coalesce((job.definition -> 'refresh' ->> 'runOnAdd')::boolean, false) into runs_on_add
    from horai.job where job.id = place.job_id and (job.definition -> 'refresh') is not null;
    if not found then
        perform horai.refuse('HR422', 'job: has no entities, for it is no refresh job.',
            'A refresh job has a cron or an every, and "refresh": {"window": "10d"}.', 'job');
    end if;
    with given as (
        select distinct on (item.key) item.key, item.payload
        from unnest(keys, payloads) with ordinality as item(key, payload, position)
        order by item.key, item.position desc
    ), kept as (
        insert into horai.entity as known (tenant_id, job_id, key, payload)
        select place.tenant_id, place.job_id, given.key, given.payload from given order by given.key
        on conflict (job_id, key) do update set payload = excluded.payload, update_time = clock_timestamp()
        where known.payload::text is distinct from excluded.payload::text
        returning known.key, known.xmax = 0 as is_new
    )
    select coalesce(array_agg(key) filter (where is_new), '{}') into added from kept;
    if runs_on_add and cardinality(added) > 0 then
        perform horai.run_added(place, added);
    end if;
    return cardinality(added);
end $$;

-- Partitions belong to the owner of the tables, and the login of a node may be another role.
alter function horai.make_partitions(date, integer) security definer set search_path = pg_catalog, pg_temp;
alter function horai.make_audit_months(date, integer) security definer set search_path = pg_catalog, pg_temp;
alter function horai.drop_audit_month(date) security definer set search_path = pg_catalog, pg_temp;
revoke execute on function horai.make_partitions from public;
