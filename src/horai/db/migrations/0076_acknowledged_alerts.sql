-- Acknowledged alerts and redelivered messages (docs/guides/alerts.md).

-- acknowledged_at: no repeats are sent from then on. acknowledged_data: the data of the first evaluation after it; an alert that is worse than that is
-- told again, and is not acknowledged any more.
alter table horai.alert add column acknowledged_at timestamptz, add column acknowledged_by text, add column acknowledged_note text,
    add column acknowledged_data json;

-- The delivery whose message this one sends again.
alter table horai.alert_delivery add column redelivery_of bigint;
