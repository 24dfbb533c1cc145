-- Statistics of the last hours by minute, and the number of instances in each state.

-- name: tenants_of
-- tenant: platform
select id, tenant_id from horai.job where id = any ($1::bigint[]);

-- name: write_minutes
-- tenant: platform
-- Written as a whole, several times while the minute lasts; writing it twice changes nothing. A tenant that is being deleted gets no
-- row.
insert into horai.minute (at, node, tenant_id, started, succeeded, failed, dead, delays)
select $1, $2, tenant_id, started, succeeded, failed, dead, delays::json
from unnest($3::integer[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
    as counts(tenant_id, started, succeeded, failed, dead, delays)
where exists (select from horai.tenant where tenant.id = counts.tenant_id and tenant.deleting_at is null)
on conflict (tenant_id, at, node) do update set started = excluded.started, succeeded = excluded.succeeded,
    failed = excluded.failed, dead = excluded.dead, delays = excluded.delays;

-- name: minutes_since
-- tenant: $1
select at, started, succeeded, failed, dead, delays from horai.minute where tenant_id = $1 and at >= $2 order by at limit 100000;

-- name: forget_minutes
-- tenant: platform
with forgotten as (delete from horai.gauge where at < clock_timestamp() - $1::interval)
delete from horai.minute where at < clock_timestamp() - $1::interval;

-- name: take_gauges
-- tenant: platform
-- The first process in the minute $1 writes the gauges; for the others, PostgreSQL does not run the subselects. Each count reads
-- at most $2 entries of its index: the order by is that of the index, so that no plan reads a table from its start.
insert into horai.gauge (at, tenant_id, retrying, dead_letters, parked_events)
select $1, tenant.id, (
    select count(*) from (
        select state from horai.instance_live live where live.tenant_id = tenant.id and (live.retry_count > 0 or live.lost > 0)
        order by live.tenant_id, live.fire_time, live.id limit $2
    ) retried where state = 3
), (
    select count(*) from (
        select from horai.dead_letter letter where letter.tenant_id = tenant.id and letter.replay_status = 'NEW'
        order by letter.tenant_id, letter.created_at, letter.id limit $2
    ) waiting
), (
    select count(*) from (
        select from horai.parked_event event where event.tenant_id = tenant.id order by event.tenant_id, event.source, event.place limit $2
    ) parked
)
from horai.tenant where not exists (select from horai.gauge where gauge.at = $1)
on conflict do nothing;

-- name: gauges_since
-- tenant: $1
select at, retrying, dead_letters, parked_events from horai.gauge where tenant_id = $1 and at >= $2 order by at limit 100000;

-- name: count_states
-- tenant: $1
-- Counts at most $2 live instances. If there are more, the result is not meaningful.
select state, count(*) as instances, count(*) filter (where state = 0 and due <= statement_timestamp()) as overdue
from (select state, due from horai.instance_live where tenant_id = $1 limit $2) few group by state;

-- name: sample_states
-- tenant: $1
-- Counts a sample of $2 per cent of the table's pages.
select state, count(*) as instances, count(*) filter (where state = 0 and due <= statement_timestamp()) as overdue
from horai.instance_live tablesample system ($2::real) where tenant_id = $1 group by state;

-- name: live_estimate
-- tenant: none
select pg_stat_get_live_tuples('horai.instance_live'::regclass) as instances;
