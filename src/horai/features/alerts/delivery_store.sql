-- The statements of the node that sends alerts: a delivery is written before it is sent and settled after.

-- name: insert_deliveries
-- tenant: platform
-- One row per channel of the rule that exists. They are due at once.
insert into horai.alert_delivery (tenant_id, rule_id, rule, channel_id, channel, kind, alerts, message, status)
select rule.tenant_id, rule.id, rule.name, channel.id, channel.name, $2, $3, $4, 'PENDING'
from horai.alert_rule rule join horai.alert_channel channel on channel.tenant_id = rule.tenant_id and channel.name = any (rule.channels)
where rule.id = $1 order by channel.name
returning id;

-- name: take_deliveries
-- tenant: platform
-- Counts the try and sets the time of the next one before anything is sent: a process that dies meanwhile loses no message. The messages of
-- a rule to a channel go out in order. $1: the longest batch; $2: the first pause, which doubles up to an hour.
with due as (
    select id from horai.alert_delivery delivery
    where status = 'PENDING' and next_try_at <= clock_timestamp() and not exists (
        select from horai.alert_delivery earlier
        where earlier.rule_id = delivery.rule_id and earlier.channel_id = delivery.channel_id and earlier.status = 'PENDING' and earlier.id < delivery.id
    )
    order by next_try_at, id limit $1 for update skip locked
), taken as (
    update horai.alert_delivery delivery set attempt = attempt + 1, tried_at = clock_timestamp(),
        next_try_at = clock_timestamp() + least($2::interval * power(2, least(attempt, 20)), interval '1 hour')
    from due where delivery.id = due.id returning delivery.*
)
select taken.id, taken.tenant_id, tenant.name as tenant, taken.channel, channel.kind as channel_kind, channel.language, channel.config, taken.message,
    taken.attempt, taken.created_at
from taken left join horai.alert_channel channel on channel.id = taken.channel_id left join horai.tenant on tenant.id = taken.tenant_id
order by taken.id;

-- name: settle_delivery
-- tenant: platform
-- Records the result of try $2. $3: delivered; a delivery that fails stays PENDING until it is older than $6, or at once with $7.
update horai.alert_delivery set http_status = $4, error = $5,
    status = case when $3 then 'DELIVERED' when $7 or created_at < clock_timestamp() - $6::interval then 'FAILED' else 'PENDING' end,
    finished_at = case when $3 or $7 or created_at < clock_timestamp() - $6::interval then clock_timestamp() end
where id = $1 and attempt = $2 and status = 'PENDING'
returning status;

-- name: next_delivery_at
-- tenant: platform
-- A message that waits for an earlier one of its rule is due after that one.
select min(next_try_at) as at from horai.alert_delivery delivery
where status = 'PENDING' and not exists (
    select from horai.alert_delivery earlier
    where earlier.rule_id = delivery.rule_id and earlier.channel_id = delivery.channel_id and earlier.status = 'PENDING' and earlier.id < delivery.id
);
