-- Alerts (docs/guides/alerts.md): rules that watch a condition, channels that people read, and a log of every delivery.
-- tenant_id 0 stands for the platform, which owns channels and rules of no tenant; no request of a tenant sees them.

-- config: the fields of its kind as responses show them, and the others in an envelope ("sealed"), or as they are without a key.
create table horai.alert_channel (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    name text collate "C" not null,
    kind text not null check (kind in ('webhook', 'slack', 'feishu', 'dingtalk', 'wecom', 'email')),
    language text not null check (language in ('en', 'zh-CN')),
    config json not null,
    version bigint not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    unique (tenant_id, name)
);

-- definition: the fields of its kind. wait: how long a condition lasts until it is reported. active_from: nothing before it is reported.
create table horai.alert_rule (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    name text collate "C" not null,
    kind text not null,
    definition json not null,
    wait interval,
    channels text[] not null,
    group_wait interval not null,
    repeat_every interval not null,
    is_enabled boolean not null default true,
    version bigint not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    active_from timestamptz not null default clock_timestamp(),
    unique (tenant_id, name)
);
create index alert_rule_kind on horai.alert_rule (kind);

-- A condition that a rule has found. object: what it concerns, such as an instance; occurrence tells two times of the same object apart.
-- notified_at: when a channel was last told of it. closed_at: nothing more will be sent about it. silenced_by: the silence that holds it.
create table horai.alert (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    rule_id bigint not null references horai.alert_rule on delete cascade,
    object text not null,
    occurrence bigint not null,
    job_id bigint,
    job text,
    tags text[] not null default '{}',
    data json not null,
    since timestamptz not null,
    fired_at timestamptz not null default clock_timestamp(),
    resolved_at timestamptz,
    notified_at timestamptz,
    closed_at timestamptz,
    silenced_by bigint,
    unique (rule_id, object, occurrence)
);
create unique index alert_fires_once on horai.alert (rule_id, object) where resolved_at is null;
create index alert_open on horai.alert (rule_id, id) where closed_at is null;
create index alert_tenant on horai.alert (tenant_id, id);
create index alert_closed on horai.alert (closed_at) where closed_at is not null;

-- One notification to one channel. It is written before it is sent; attempt counts the tries, next_try_at is that of the next one.
-- rule_id and channel_id may be gone: the log keeps their names. message: the facts of which every try makes the same text.
create table horai.alert_delivery (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    rule_id bigint,
    rule text,
    channel_id bigint not null,
    channel text not null,
    kind text not null check (kind in ('FIRING', 'REPEATED', 'RESOLVED', 'TEST')),
    alerts integer not null,
    message json not null,
    status text not null check (status in ('PENDING', 'DELIVERED', 'FAILED')),
    attempt integer not null default 0,
    http_status integer,
    error text,
    created_at timestamptz not null default clock_timestamp(),
    next_try_at timestamptz not null default clock_timestamp(),
    tried_at timestamptz,
    finished_at timestamptz,
    check ((status = 'PENDING') = (finished_at is null))
);
create index alert_delivery_tenant on horai.alert_delivery (tenant_id, id);
create index alert_delivery_pending on horai.alert_delivery (next_try_at) where status = 'PENDING';
create index alert_delivery_order on horai.alert_delivery (rule_id, channel_id, id) where status = 'PENDING';
create index alert_delivery_finished on horai.alert_delivery (finished_at) where finished_at is not null;

-- Alerts that match are not sent between starts_at and ends_at. A field that is null matches everything.
create table horai.alert_silence (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    rule text,
    job text,
    tag text,
    starts_at timestamptz not null,
    ends_at timestamptz not null,
    note text,
    actor text not null,
    created_at timestamptz not null default clock_timestamp(),
    check (ends_at > starts_at)
);
create index alert_silence_tenant on horai.alert_silence (tenant_id, id);
create index alert_silence_ends on horai.alert_silence (ends_at);

-- External jobs that report by themselves. One is missing when it has not reported for "every" and "grace" since last_at or active_from.
create table horai.heartbeat (
    id bigint generated always as identity unique,
    tenant_id integer not null references horai.tenant,
    name text collate "C" not null,
    every interval not null,
    grace interval not null,
    beats bigint not null default 0,
    last_at timestamptz,
    active_from timestamptz not null default clock_timestamp(),
    version bigint not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, name)
) with (fillfactor = 80);
revoke all on horai.alert_channel, horai.alert_rule, horai.alert, horai.alert_delivery, horai.alert_silence, horai.heartbeat from public;

-- Wakes the node that evaluates rules, if there is a rule of the kind. The triggers fire for rows that no run in order has.
create function horai.wake_alerts() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    if exists (select from horai.alert_rule where kind = tg_argv[0]) then
        perform pg_notify('horai_wake', 'l');
    end if;
    return null;
end $$;
create trigger dead_letter_alerts after insert on horai.dead_letter
    for each row execute function horai.wake_alerts('INSTANCE_DEAD');
create trigger workflow_run_alerts after update of phase on horai.workflow_run
    for each row when (old.phase <> new.phase and 1 in (old.phase, new.phase)) execute function horai.wake_alerts('RUN_BLOCKED');
create trigger mode_change_alerts after insert on horai.mode_change
    for each row execute function horai.wake_alerts('MODE_ENTERED');
create trigger reconcile_report_alerts after update of finished_at on horai.reconcile_report
    for each row when (new.finished_at is not null) execute function horai.wake_alerts('RECONCILE_DRIFT');
revoke execute on function horai.wake_alerts from public;
