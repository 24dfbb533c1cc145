-- Change detection for all readers of the feed: runs at most once a second, and only while there are readers.

-- name: pulse
-- tenant: platform
-- Marks by topic. Most are PostgreSQL's own counts of the writes to a table: no row of it is read, regardless of its size. A
-- session that was busy a moment ago reports its counts up to ten seconds late; sequences change at once.
select topic, pg_stat_get_tuples_inserted(t) || '.' || pg_stat_get_tuples_updated(t) || '.' || pg_stat_get_tuples_deleted(t) as mark
from (values
    ('instances', 'horai.instance_live'::regclass),
    ('jobs', 'horai.job'::regclass),
    ('dead-letters', 'horai.dead_letter'::regclass),
    ('workflows', 'horai.workflow'::regclass),
    ('workflows', 'horai.workflow_run'::regclass),
    ('workflows', 'horai.workflow_node'::regclass),
    ('backfills', 'horai.backfill'::regclass),
    ('refresh', 'horai.refresh_batch'::regclass),
    ('refresh', 'horai.entity'::regclass),
    ('reconcilers', 'horai.reconciler'::regclass),
    ('reconcilers', 'horai.reconcile_report'::regclass)
) as written(topic, t)
union all
select 'instances', last_value::text from horai.event_id_seq
union all
select 'instances', last_value::text from horai.instance_id
union all
select 'dead-letters', last_value::text from horai.dead_letter_id_seq
union all
select 'backfills', last_value::text from horai.backfill_id_seq
union all
select 'jobs', last_value::text from horai.job_id_seq
union all
select 'queues', count(*) || '.' || sum(version) from horai.queue
union all
select 'nodes', string_agg(incarnation || case when draining then 'd' else '' end || case when fenced_at is null and stopped_at is null then '' else 'x' end, ' ' order by incarnation)
from horai.node where rescued_at is null;

-- name: has_several_tenants
-- tenant: platform
select count(*) > 1 from (select from horai.tenant limit 2) known;

-- name: tenant_pulses
-- tenant: platform
-- Marks of the tenants $1 by topic: the newest write in the audit log, the newest dead letter, and the attempts of the last minutes.
-- Each is read by an index.
select tenant.id as tenant_id, changed.topic, newest.mark
from unnest($1::integer[]) as tenant(id)
cross join lateral (
    select audit.id::text as mark from horai.audit where audit.tenant_id = tenant.id order by audit.at desc, audit.id desc limit 1
) newest
cross join unnest(array['jobs', 'queues', 'workflows', 'backfills', 'refresh', 'reconcilers', 'dead-letters']) as changed(topic)
union all
select tenant.id, 'dead-letters', newest.mark
from unnest($1::integer[]) as tenant(id)
cross join lateral (
    select letter.id::text as mark from horai.dead_letter letter where letter.tenant_id = tenant.id
    order by letter.created_at desc, letter.id desc limit 1
) newest
union all
select minute.tenant_id, 'instances', sum(minute.started) || '.' || sum(minute.succeeded) || '.' || sum(minute.failed) || '.' || sum(minute.dead)
from horai.minute where minute.tenant_id = any ($1) and minute.at > clock_timestamp() - interval '3 minutes' group by minute.tenant_id;
