-- How the last hours went, minute by minute; and how many instances there are in each state.

-- name: write_minute
-- As a whole, again and again while the minute lasts: written twice it is the same.
insert into horai.minute (at, node, started, succeeded, failed, dead, delays) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (at, node) do update set started = excluded.started, succeeded = excluded.succeeded, failed = excluded.failed,
    dead = excluded.dead, delays = excluded.delays;

-- name: minutes_since
select at, started, succeeded, failed, dead, delays from horai.minute where at >= $1 order by at limit 100000;

-- name: forget_minutes
delete from horai.minute where at < clock_timestamp() - $1::interval;

-- name: count_states
-- Of at most $2 live instances: all of them, or as good as nothing.
select state, count(*) as instances from (select state from horai.instance_live where tenant_id = $1 limit $2) few group by state;

-- name: sample_states
-- Of $2 per cent of the table's pages.
select state, count(*) as instances from horai.instance_live tablesample system ($2::real) where tenant_id = $1 group by state;

-- name: live_estimate
select pg_stat_get_live_tuples('horai.instance_live'::regclass) as instances;
