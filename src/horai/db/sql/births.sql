-- Instances that are claimed at birth.

-- name: enqueue_running
-- tenant: $3
-- moves: -> INIT | RUNNING
-- Inserts instances of one job that are due now, by the name $4 of the job, and claims the first $8 of them for the node $1 with the
-- claim $2. The rest waits as INIT, and so do all of them if the node is fenced, if the job is paused or has left the lane $7, or if
-- its queue has a limit or a pause. The lock on the row of the node orders the claim against the fencing of the node, as in claim_due.
-- Instances of a metered job are charged to the quotas of its tenant first, or an error refuses them. Returns one row per payload of
-- $6, in order, with the stored payload if $9 is true, and no rows if the job does not exist or is encrypted.
with me as materialized (
    select from horai.node where incarnation = $1 and fenced_at is null and stopped_at is null for key share
), job as materialized (
    select id, tenant_id, payload, case when status = 0 then lane_id else 0 end as lane, metered from horai.job
    where tenant_id = $3 and name = $4 and deleted_at is null and not encrypted for key share
), admitted as materialized (
    select * from job
    where not metered or horai.charge(tenant_id, cardinality($6::json[]), (select max(octet_length(p::text)) from unnest($6::json[]) as p))
), stamp as materialized (
    select clock_timestamp() as now from admitted
), entered as materialized (
    select lane from admitted
    where exists (select from me) and lane = any (array(select unnest(horai.open_lanes(array[$7::integer]))))
)
insert into horai.instance_live
    (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload,
     state, attempt, fence, node, claim, claimed_at)
select fresh.id, fresh.job_id, fresh.tenant_id, fresh.lane, fresh.id % $5, fresh.at, fresh.at, fresh.at, fresh.now, -fresh.id, fresh.payload,
    case when fresh.runs then 1 else 0 end, case when fresh.runs then 1 else 0 end, case when fresh.runs then 1 else 0 end,
    case when fresh.runs then $1::bigint end, case when fresh.runs then $2::bigint end, case when fresh.runs then fresh.now end
from (
    select nextval('horai.instance_id') as id, job.id as job_id, job.tenant_id, job.lane, coalesce(item.payload, job.payload) as payload,
        date_trunc('milliseconds', stamp.now) as at, stamp.now, item.position <= $8 and exists (select from entered) as runs
    from admitted job cross join stamp cross join unnest($6::json[]) with ordinality as item(payload, position)
    order by item.position
) fresh
returning id, job_id, lane, due, fire_time, state = 1 as is_claimed, case when $9 then payload end as payload;
