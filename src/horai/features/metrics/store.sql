-- Figures of the whole cluster, for one scrape.

-- name: cluster_figures
-- tenant: platform
select (select horai.controls()) as controls, (
    select coalesce(json_agg(json_build_array(node.name, node.vitals, case when draining then '{}' else roles end)), '[]') from horai.node
    where rescued_at is null and fenced_at is null and stopped_at is null and lease_until > clock_timestamp() and incarnation <> $1
        and vitals is not null
) as readings, coalesce((select roles from horai.node where incarnation = $1 and not draining), '{}') as roles,
pg_snapshot_xmax(pg_current_snapshot())::text::bigint - pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest_xmin;

-- name: depth_by_priority
-- tenant: platform
-- Counts at most $1 due instances of each lane and shard, by the index of claims, over the first $3 lanes.
select lane.priority, sum(head.waiting)::bigint as waiting,
    coalesce(extract(epoch from statement_timestamp() - min(head.oldest)), 0)::double precision as oldest
from (select id, priority from horai.lane where id > 0 order by id limit $3) lane
cross join generate_series(0, $2::integer - 1) as shard(n)
cross join lateral (
    select count(*) as waiting, min(due) as oldest from (
        select live.due from horai.instance_live live
        where live.shard = shard.n and live.lane = lane.id and live.state in (0, 3) and live.due <= statement_timestamp()
        order by live.due, live.id limit $1
    ) few
) head
group by lane.priority;

-- name: outbox_figures
-- tenant: platform
-- For each status of sinks: how many there are, and the age of the oldest event that one of them has not got, or that an open transaction
-- may keep back. Reads the first
-- $1 sinks.
select sink.status, count(*) as sinks,
    greatest(max(extract(epoch from clock_timestamp() - next.at)),
        extract(epoch from clock_timestamp() - (select held_since from horai.outbox_cursor)), 0)::double precision as lag
from (select id, tenant_id, status, position, types from horai.sink order by id limit $1) sink
left join lateral (
    select e.at from horai.outbox e
    where e.tenant_id = sink.tenant_id and e.position > sink.position and (sink.types is null or e.type = any (sink.types))
    order by e.position limit 1
) next on true
group by sink.status;

-- name: last_recovery
-- tenant: platform
select incident_id, resumed, replayed, dlq_moved from horai.recovery where completed_at is not null order by completed_at desc limit 1;
