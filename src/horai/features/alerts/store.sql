-- Channels, rules, silences and heartbeats of a tenant ($1), or of the platform (0). A change wakes the node that evaluates rules.

-- name: list_channels
-- tenant: $1
select id, name, kind, language, config, version, created_at, updated_at from horai.alert_channel
where tenant_id = $1 and name > $2 order by name limit $3;

-- name: find_channel
-- tenant: $1
select id, name, kind, language, config, version, created_at, updated_at from horai.alert_channel where tenant_id = $1 and name = $2;

-- name: lock_channel
-- tenant: $1
select id, name, kind, language, config, version, created_at, updated_at from horai.alert_channel where tenant_id = $1 and name = $2 for update;

-- name: share_channels
-- tenant: $1
-- Keeps the channels of a rule from being deleted until commit.
select name from horai.alert_channel where tenant_id = $1 and name = any ($2::text[]) order by name for key share;

-- name: count_channels
-- tenant: $1
select count(*) from horai.alert_channel where tenant_id = $1;

-- name: insert_channel
-- tenant: $1
insert into horai.alert_channel (tenant_id, name, kind, language, config) values ($1, $2, $3, $4, $5)
on conflict (tenant_id, name) do nothing
returning id, name, kind, language, config, version, created_at, updated_at;

-- name: replace_channel
-- tenant: $1
update horai.alert_channel set kind = $3, language = $4, config = $5, version = version + 1, updated_at = clock_timestamp()
where tenant_id = $1 and name = $2
returning id, name, kind, language, config, version, created_at, updated_at;

-- name: rule_of_channel
-- tenant: $1
select name from horai.alert_rule where tenant_id = $1 and $2::text = any (channels) order by name limit 1;

-- name: delete_channel
-- tenant: $1
delete from horai.alert_channel where tenant_id = $1 and name = $2 returning id;

-- name: list_rules
-- tenant: $1
select id, name, kind, definition, channels, group_wait, repeat_every, is_enabled, version, created_at, updated_at from horai.alert_rule
where tenant_id = $1 and name > $2 order by name limit $3;

-- name: find_rule
-- tenant: $1
select id, name, kind, definition, channels, group_wait, repeat_every, is_enabled, version, created_at, updated_at from horai.alert_rule
where tenant_id = $1 and name = $2;

-- name: lock_rule
-- tenant: $1
select id, name, kind, definition, channels, group_wait, repeat_every, is_enabled, version, created_at, updated_at from horai.alert_rule
where tenant_id = $1 and name = $2 for update;

-- name: count_rules
-- tenant: $1
select count(*) from horai.alert_rule where tenant_id = $1;

-- name: insert_rule
-- tenant: $1
with made as (
    insert into horai.alert_rule (tenant_id, name, kind, definition, wait, channels, group_wait, repeat_every, is_enabled)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    on conflict (tenant_id, name) do nothing
    returning id, name, kind, definition, channels, group_wait, repeat_every, is_enabled, version, created_at, updated_at
)
select made.*, pg_notify('horai_wake', 'l') from made;

-- name: replace_rule
-- tenant: $1
-- A rule that is enabled again, or of another kind, reports nothing that happened before.
with changed as (
    update horai.alert_rule set kind = $3, definition = $4, wait = $5, channels = $6, group_wait = $7, repeat_every = $8, is_enabled = $9,
        active_from = case when is_enabled and kind = $3 then active_from else clock_timestamp() end,
        version = version + 1, updated_at = clock_timestamp()
    where tenant_id = $1 and name = $2
    returning id, name, kind, definition, channels, group_wait, repeat_every, is_enabled, version, created_at, updated_at
)
select changed.*, pg_notify('horai_wake', 'l') from changed;

-- name: drop_alerts_of_rule
-- tenant: $1
-- Alerts of a rule that watches something else from now on.
delete from horai.alert where tenant_id = $1 and rule_id = $2;

-- name: delete_rule
-- tenant: $1
with gone as (delete from horai.alert_rule where tenant_id = $1 and name = $2 returning id)
select gone.id, pg_notify('horai_wake', 'l') from gone;

-- name: list_silences
-- tenant: $1
-- Those that have not ended, newest first; with $4 also those that have.
select id, rule, job, tag, starts_at, ends_at, note, actor, created_at from horai.alert_silence
where tenant_id = $1 and id < $2 and ($4 or ends_at > clock_timestamp()) order by id desc limit $3;

-- name: count_silences
-- tenant: $1
select count(*) from horai.alert_silence where tenant_id = $1 and ends_at > clock_timestamp();

-- name: insert_silence
-- tenant: $1
with made as (
    insert into horai.alert_silence (tenant_id, rule, job, tag, starts_at, ends_at, note, actor)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    returning id, rule, job, tag, starts_at, ends_at, note, actor, created_at
)
select made.*, pg_notify('horai_wake', 'l') from made;

-- name: delete_silence
-- tenant: $1
with gone as (delete from horai.alert_silence where tenant_id = $1 and id = $2 returning id)
select gone.id, pg_notify('horai_wake', 'l') from gone;

-- name: list_alerts
-- tenant: $1
-- Alerts that fire ($4 true), those that are resolved ($4 false), or both ($4 null), newest first.
select alert.id, rule.name as rule, rule.kind, alert.object, alert.job, alert.tags, alert.data, alert.since, alert.fired_at, alert.resolved_at,
    alert.notified_at, alert.silenced_by, alert.acknowledged_at, alert.acknowledged_by, alert.acknowledged_note
from horai.alert join horai.alert_rule rule on rule.id = alert.rule_id
where alert.tenant_id = $1 and alert.id < $2 and ($4::boolean is null or (alert.resolved_at is null) = $4)
    and ($5::text is null or rule.name = $5)
order by alert.id desc limit $3;

-- name: lock_alert
-- tenant: $1
select alert.id, rule.name as rule, rule.kind, alert.object, alert.job, alert.tags, alert.data, alert.since, alert.fired_at, alert.resolved_at,
    alert.notified_at, alert.silenced_by, alert.acknowledged_at, alert.acknowledged_by, alert.acknowledged_note
from horai.alert join horai.alert_rule rule on rule.id = alert.rule_id
where alert.tenant_id = $1 and alert.id = $2 for update of alert;

-- name: acknowledge_alert
-- tenant: $1
update horai.alert set acknowledged_at = clock_timestamp(), acknowledged_by = $3, acknowledged_note = $4, acknowledged_data = null
where tenant_id = $1 and id = $2 and resolved_at is null and acknowledged_at is null
returning acknowledged_at;

-- name: list_deliveries
-- tenant: $1
select id, rule, channel, kind, alerts, status, attempt, http_status, error, created_at, tried_at, next_try_at, finished_at, redelivery_of
from horai.alert_delivery
where tenant_id = $1 and id < $2 and ($4::text is null or status = $4) and ($5::text is null or channel = $5)
    and ($6::text is null or rule = $6)
order by id desc limit $3;

-- name: insert_test_delivery
-- tenant: $1
insert into horai.alert_delivery (tenant_id, channel_id, channel, kind, alerts, message, status, attempt, http_status, error, created_at, tried_at, finished_at)
values ($1, $2, $3, 'TEST', 1, $4, $5, 1, $6, $7, $8, $8, clock_timestamp())
returning id, rule, channel, kind, alerts, status, attempt, http_status, error, created_at, tried_at, next_try_at, finished_at,
    redelivery_of;

-- name: lock_delivery
-- tenant: $1
select id, rule, channel, kind, alerts, status, attempt, http_status, error, created_at, tried_at, next_try_at, finished_at, redelivery_of
from horai.alert_delivery where tenant_id = $1 and id = $2 for update;

-- name: pending_redelivery
-- tenant: $1
select id from horai.alert_delivery where tenant_id = $1 and redelivery_of = $2 and status = 'PENDING' limit 1;

-- name: redeliver
-- tenant: $1
-- Adds a delivery with the message of delivery $2, to the channel that has the same name now. It is due at once. No row: there is no such channel.
with made as (
    insert into horai.alert_delivery (tenant_id, rule_id, rule, channel_id, channel, kind, alerts, message, status, redelivery_of)
    select old.tenant_id, old.rule_id, old.rule, channel.id, channel.name, old.kind, old.alerts, old.message, 'PENDING', old.id
    from horai.alert_delivery old join horai.alert_channel channel on channel.tenant_id = old.tenant_id and channel.name = old.channel
    where old.tenant_id = $1 and old.id = $2
    returning id, rule, channel, kind, alerts, status, attempt, http_status, error, created_at, tried_at, next_try_at, finished_at, redelivery_of
)
select made.*, pg_notify('horai_wake', 'l') from made;

-- name: list_heartbeats
-- tenant: $1
select name, every, grace, beats, last_at, active_from, version, created_at, updated_at, clock_timestamp() as now from horai.heartbeat
where tenant_id = $1 and name > $2 order by name limit $3;

-- name: lock_heartbeat
-- tenant: $1
select name, every, grace, beats, last_at, active_from, version, created_at, updated_at, clock_timestamp() as now from horai.heartbeat
where tenant_id = $1 and name = $2 for update;

-- name: count_heartbeats
-- tenant: $1
select count(*) from horai.heartbeat where tenant_id = $1;

-- name: put_heartbeat
-- tenant: $1
insert into horai.heartbeat as known (tenant_id, name, every, grace) values ($1, $2, $3, $4)
on conflict (tenant_id, name) do update set every = excluded.every, grace = excluded.grace, active_from = clock_timestamp(),
    version = known.version + 1, updated_at = clock_timestamp()
returning name, every, grace, beats, last_at, active_from, version, created_at, updated_at, clock_timestamp() as now;

-- name: beat_heartbeat
-- tenant: $1
-- The clock of the database decides when it came. A missing one that comes again wakes the node that evaluates rules.
with late as (
    select greatest(last_at, active_from) + every + grace < clock_timestamp() as is_late from horai.heartbeat where tenant_id = $1 and name = $2
), beaten as (
    update horai.heartbeat set beats = beats + 1, last_at = clock_timestamp() where tenant_id = $1 and name = $2
    returning name, every, grace, beats, last_at, active_from, version, created_at, updated_at, clock_timestamp() as now
)
select beaten.*, case when late.is_late then pg_notify('horai_wake', 'l') end from beaten cross join late;

-- name: delete_heartbeat
-- tenant: $1
with gone as (delete from horai.heartbeat where tenant_id = $1 and name = $2 returning name)
select gone.name, pg_notify('horai_wake', 'l') from gone;
