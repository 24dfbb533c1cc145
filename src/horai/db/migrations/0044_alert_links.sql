-- A rule of a job's deadline may name a calendar: a change of its days wakes the node that evaluates rules.
create trigger calendar_alerts after update of days on horai.calendar
    for each row execute function horai.wake_alerts('NOT_SUCCESS_BY');

-- The last message to a channel, and the messages that it has not taken.
create index alert_delivery_channel on horai.alert_delivery (channel_id, id);
create index alert_delivery_retried on horai.alert_delivery (channel_id, created_at) where status = 'PENDING';
