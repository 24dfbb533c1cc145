-- Quotas of tenants. The functions of migration 0031 decide; a statement that adds instances of a metered job calls `horai.charge`.

-- name: charge
-- tenant: $1
-- $1 tenant, $2 new instances, $3 the size of the largest payload, null if there is none.
select horai.charge($1, $2::bigint, $3::integer);

-- name: check_payload_quota
-- tenant: $1
select horai.check_payload_quota($1, $2::integer);

-- name: charge_jobs
-- tenant: by job
-- $1: the job of each new instance.
select horai.charge_jobs($1::bigint[], null);

-- name: quota_room
-- tenant: $1
-- No row without the quota: greatest() would make 0 of null.
select greatest(0, live_instances - live_counted - live_charged) from horai.tenant_quota where tenant_id = $1 and live_instances is not null;

-- name: note_added
-- tenant: $1
update horai.tenant_quota set live_charged = live_charged + $2::bigint where tenant_id = $1 and live_instances is not null;

-- name: tenants_to_count
-- tenant: platform
select tenant_id, live_instances as limit, live_counted + live_charged as estimate, counted_at
from horai.tenant_quota where live_instances is not null order by tenant_id;

-- name: begin_count
-- tenant: $1
-- From here on, live_charged has only the instances that the count may miss. The lock waits for transactions that have charged
-- instances and not committed: the count sees theirs.
update horai.tenant_quota set live_counted = live_counted + live_charged, live_charged = 0 where tenant_id = $1;

-- name: finish_count
-- tenant: $1
-- Instances that were added between begin_count and this count are in both figures until the next count, so that the estimate
-- is never too low. Counts one more than the limit at most.
with counted as materialized (
    select count(*) as live from (
        select from horai.instance_live live
        where live.tenant_id = $1 limit (select live_instances + 1 from horai.tenant_quota where tenant_id = $1)
    ) own
)
update horai.tenant_quota set live_counted = counted.live, counted_at = clock_timestamp() from counted
where tenant_id = $1 and live_instances is not null returning live_counted;

-- name: read_quotas
-- tenant: $1
select jobs, live_instances, enqueue_per_second, payload_bytes, concurrency, callback_networks::text[] as callback_networks
from horai.tenant_quota where tenant_id = $1;

-- name: write_quotas
-- tenant: $1
-- A new rate starts with a full bucket; a new quota of live instances starts with a count, which reads one row more than the
-- quota at most.
insert into horai.tenant_quota as quota
    (tenant_id, jobs, live_instances, enqueue_per_second, payload_bytes, concurrency, callback_networks, tokens, refilled_at, live_counted)
select $1, $2, $3::bigint, $4::integer, $5, $6, $7::text[]::cidr[], coalesce($4, 0), clock_timestamp(), count(*)
from (select from horai.instance_live where tenant_id = $1 limit $3::bigint + 1) live where $3::bigint is not null
on conflict (tenant_id) do update set jobs = excluded.jobs, live_instances = excluded.live_instances,
    enqueue_per_second = excluded.enqueue_per_second, payload_bytes = excluded.payload_bytes, concurrency = excluded.concurrency,
    callback_networks = excluded.callback_networks,
    tokens = case when quota.enqueue_per_second is distinct from excluded.enqueue_per_second then excluded.tokens else quota.tokens end,
    refilled_at = case when quota.enqueue_per_second is distinct from excluded.enqueue_per_second then clock_timestamp() else quota.refilled_at end,
    live_counted = case when quota.live_instances is distinct from excluded.live_instances then excluded.live_counted else quota.live_counted end,
    live_charged = case when quota.live_instances is distinct from excluded.live_instances then 0 else quota.live_charged end;

-- name: mark_metered
-- tenant: $1
-- Marks the jobs of the tenant whose new instances have to be charged.
update horai.job set metered = horai.is_metered($1) where tenant_id = $1 and deleted_at is null and metered <> horai.is_metered($1);

-- name: usage_of_tenant
-- tenant: $1
-- $2: instances to count at most. An instance that waits for its workflow run takes no permit and does not count as running.
select (select count(*) from horai.job where tenant_id = $1 and deleted_at is null and ticks_for is null) as jobs,
    count(*) as live_instances, count(*) filter (where live.state = 1 and live.node <> 0) as running
from (select state, node from horai.instance_live where tenant_id = $1 limit $2) live;
