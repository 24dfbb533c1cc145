-- Lanes: the instances of a tenant with one queue, priority and handler.

-- name: lane_of
-- tenant: $1
-- $3 null: the lane of jobs that set no priority and use that of their queue. A trigger adds a new lane to its queue.
with known as (
    select id from horai.lane
    where tenant_id = $1 and queue = $2 and handler = $4 and inherits = ($3::smallint is null) and (inherits or priority = $3)
), made as (
    insert into horai.lane (tenant_id, queue, priority, handler, inherits)
    select $1, $2, coalesce($3, 2), $4, $3 is null where not exists (select from known)
    on conflict do nothing returning id
)
select id from known union all select id from made;

-- name: lanes
-- tenant: platform
-- Returns every lane with the limits of its queue, and the pool and the weight of its tenant.
select lane.id, lane.tenant_id, lane.queue, lane.priority, lane.handler, lane.queue_id, tenant.weight,
    queue.max_concurrency, queue.rate_count, queue.rate_per, queue.paused or queue.held as paused, queue.pool_id, lane.is_keyed
from horai.lane join horai.tenant on tenant.id = lane.tenant_id join horai.queue on queue.id = lane.queue_id
order by lane.id;
