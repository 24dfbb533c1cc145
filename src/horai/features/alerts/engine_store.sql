-- The statements of the node that evaluates rules and decides what is sent. Each evaluation is one statement: it adds alerts for conditions that
-- begin and resolves those that have ended. Two nodes that evaluate at once add an alert once: alert_fires_once. An alert that is acknowledged gets
-- the data of each evaluation; the first of them is kept, and tells later whether the condition got worse.

-- name: rules_in_force
-- tenant: platform
-- days: those of the calendar that the rule names.
select rule.id, rule.tenant_id, rule.name, rule.kind, rule.definition, rule.channels, rule.group_wait, rule.repeat_every, rule.active_from, calendar.days
from horai.alert_rule rule
left join horai.calendar on calendar.tenant_id = rule.tenant_id and calendar.name = rule.definition ->> 'calendar'
where rule.is_enabled order by rule.id;

-- name: evaluate_dead
-- tenant: platform
-- Dead letters since the rule is active, of the last hour: a transaction that adds one lasts for seconds, and a wake follows it. An alert
-- of this kind is found once for ever. It is resolved when its letter is replayed, discarded or superseded.
with fired as (
    insert into horai.alert (tenant_id, rule_id, object, occurrence, job_id, job, tags, since, data)
    select rule.tenant_id, rule.id, letter.instance_id::text, 0, job.id, job.name, job.tags, letter.created_at,
        json_build_object('job', job.name, 'instance', letter.instance_id::text, 'errorCode', letter.error_code)
    from horai.alert_rule rule
    join horai.dead_letter letter on letter.tenant_id = rule.tenant_id and letter.created_at >= rule.active_from
        and letter.created_at > clock_timestamp() - interval '1 hour'
    join horai.job on job.id = letter.job_id
    where rule.kind = 'INSTANCE_DEAD' and rule.is_enabled and (rule.definition ->> 'job' is null or rule.definition ->> 'job' = job.name)
        and (rule.definition ->> 'tag' is null or rule.definition ->> 'tag' = any (job.tags))
        and not exists (
            select from horai.alert known where known.rule_id = rule.id and known.object = letter.instance_id::text and known.occurrence = 0
        )
    order by letter.id limit $1
    on conflict do nothing returning id
), resolved as (
    update horai.alert set resolved_at = clock_timestamp()
    from horai.alert_rule rule, horai.dead_letter letter
    where rule.kind = 'INSTANCE_DEAD' and alert.rule_id = rule.id and alert.resolved_at is null and alert.closed_at is null
        and letter.instance_id = alert.object::bigint and letter.replay_status <> 'NEW'
    returning alert.id
)
select (select count(*) from fired) as fired, (select count(*) from resolved) as resolved;

-- name: evaluate_modes
-- tenant: platform
-- Entries into modes since the rule is active, of the last hour. An alert is resolved when its mode was left.
with entry as (
    select change.id, change.at, change.mode, change.level from horai.mode_change change
    where change.at > clock_timestamp() - interval '1 hour' and change.level > 0 and not change.is_dry_run and coalesce((
        select before.level from horai.mode_change before
        where before.mode = change.mode and before.id < change.id and not before.is_dry_run order by before.id desc limit 1
    ), 0) = 0
), fired as (
    insert into horai.alert (tenant_id, rule_id, object, occurrence, since, data)
    select rule.tenant_id, rule.id, entry.mode, entry.id, entry.at, json_build_object('mode', entry.mode, 'level', entry.level)
    from horai.alert_rule rule join entry on entry.at >= rule.active_from
        and (rule.definition -> 'modes' is null or (rule.definition -> 'modes')::jsonb ? entry.mode)
    where rule.kind = 'MODE_ENTERED' and rule.is_enabled and not exists (
        select from horai.alert known where known.rule_id = rule.id and known.object = entry.mode and known.occurrence = entry.id
    )
    order by entry.id
    on conflict do nothing returning id
), resolved as (
    update horai.alert set resolved_at = clock_timestamp()
    from horai.alert_rule rule
    where rule.kind = 'MODE_ENTERED' and alert.rule_id = rule.id and alert.resolved_at is null and exists (
        select from horai.mode_change change
        where change.mode = alert.object and change.id > alert.occurrence and change.level = 0 and not change.is_dry_run
    )
    returning alert.id
), levels as (
    select alert.id, json_build_object('mode', alert.object, 'level', last.level) as data
    from horai.alert join horai.alert_rule rule on rule.id = alert.rule_id and rule.kind = 'MODE_ENTERED'
    cross join lateral (
        select level from horai.mode_change change where change.mode = alert.object and not change.is_dry_run order by change.id desc limit 1
    ) last
    where alert.resolved_at is null and alert.acknowledged_at is not null and not exists (
        select from horai.mode_change change
        where change.mode = alert.object and change.id > alert.occurrence and change.level = 0 and not change.is_dry_run
    )
), renewed as (
    update horai.alert set data = levels.data, acknowledged_data = coalesce(alert.acknowledged_data, levels.data) from levels
    where alert.id = levels.id and (alert.acknowledged_data is null or not alert.data::jsonb @> levels.data::jsonb)
    returning alert.id
)
select (select count(*) from fired) as fired, (select count(*) from resolved) as resolved, (select count(*) from renewed) as renewed;

-- name: evaluate_runs_and_reports
-- tenant: platform
-- RUN_BLOCKED and RECONCILE_DRIFT: conditions that rows show as long as they last.
with found as materialized (
    select rule.tenant_id, rule.id as rule_id, run.id::text as object, job.id as job_id, workflow.name as job, job.tags, clock_timestamp() as since,
        json_build_object('workflow', workflow.name, 'run', run.id::text, 'dead', (
            select coalesce(json_agg(node.name order by node.name), '[]') from horai.workflow_node node
            where node.run_id = run.id and node.is_current and node.ended = 4
        ), 'blocked', (
            select count(*) from horai.workflow_node node left join horai.instance_live live on live.id = node.instance_id
            where node.run_id = run.id and node.is_current and node.ended is null and (live.state = 6 or node.map is not null)
        )) as data
    from horai.alert_rule rule
    join horai.workflow on workflow.tenant_id = rule.tenant_id and workflow.deleted_at is null
        and (rule.definition ->> 'workflow' is null or rule.definition ->> 'workflow' = workflow.name)
    join horai.workflow_run run on run.workflow_id = workflow.id and run.phase = 1
    join horai.job on job.id = workflow.job_id
    where rule.kind = 'RUN_BLOCKED' and rule.is_enabled
    union all
    select rule.tenant_id, rule.id, job.name, job.id, job.name, job.tags, report.finished_at,
        json_build_object('reconciler', job.name, 'missing', report.missing - report.created, 'surplus', report.surplus,
            'faulty', report.faulty, 'isBroken', report.error is not null)
    from horai.alert_rule rule
    join horai.reconciler on reconciler.tenant_id = rule.tenant_id
    join horai.job on job.id = reconciler.job_id and job.deleted_at is null
        and (rule.definition ->> 'reconciler' is null or rule.definition ->> 'reconciler' = job.name)
    cross join lateral (
        select * from horai.reconcile_report last where last.reconciler_id = reconciler.id and last.finished_at is not null
        order by last.id desc limit 1
    ) report
    where rule.kind = 'RECONCILE_DRIFT' and rule.is_enabled
        and (report.missing > report.created or report.surplus > 0 or report.faulty > 0 or report.error is not null)
), fired as (
    insert into horai.alert (tenant_id, rule_id, object, occurrence, job_id, job, tags, since, data)
    select tenant_id, rule_id, object, (extract(epoch from clock_timestamp()) * 1000000)::bigint, job_id, job, tags, since, data
    from found where not exists (
        select from horai.alert known where known.rule_id = found.rule_id and known.object = found.object and known.resolved_at is null
    )
    on conflict do nothing returning id
), resolved as (
    update horai.alert set resolved_at = clock_timestamp()
    from horai.alert_rule rule
    where rule.kind in ('RUN_BLOCKED', 'RECONCILE_DRIFT') and alert.rule_id = rule.id and alert.resolved_at is null and not exists (
        select from found where found.rule_id = alert.rule_id and found.object = alert.object
    )
    returning alert.id
), renewed as (
    update horai.alert set data = (alert.data::jsonb - 'causes' || found.data::jsonb)::json, acknowledged_data = coalesce(alert.acknowledged_data, found.data)
    from found
    where alert.rule_id = found.rule_id and alert.object = found.object and alert.resolved_at is null and alert.acknowledged_at is not null
        and (alert.acknowledged_data is null or not alert.data::jsonb @> found.data::jsonb)
    returning alert.id
)
select (select count(*) from fired) as fired, (select count(*) from resolved) as resolved, (select count(*) from renewed) as renewed;

-- name: evaluate_times
-- tenant: platform
-- JOB_LATE, QUEUE_WAIT, HEARTBEAT_MISSING, BUDGET_BURN, SINK_PARKED, ARCHIVE_FAILED and PARTITION_MISSING. A sink that was parked and is paused now has not got its events: its
-- alert goes on. Of each tenant only the 10,000 oldest live instances are read. Paused jobs and queues, and those that are held, wait on purpose. $1: the share of late starts that the objective allows.
with waiting as materialized (
    select rule.id as rule_id, rule.kind, oldest.job_id, lane.queue, oldest.due from horai.alert_rule rule
    cross join lateral (
        select job_id, due, state, lane from horai.instance_live live
        where live.tenant_id = rule.tenant_id and live.fire_time < clock_timestamp() - rule.wait
        order by live.fire_time, live.id limit 10000
    ) oldest
    join horai.lane on lane.id = oldest.lane
    join horai.queue on queue.id = lane.queue_id and not queue.paused and not queue.held
    where rule.kind in ('JOB_LATE', 'QUEUE_WAIT') and rule.is_enabled and oldest.state in (0, 3) and oldest.lane <> 0
        and oldest.due < clock_timestamp() - rule.wait
), found as materialized (
    select rule.tenant_id, rule.id as rule_id, job.id::text as object, job.id as job_id, job.name as job, job.tags, min(waiting.due) as since,
        json_build_object('job', job.name, 'instances', count(*), 'oldest', min(waiting.due)) as data
    from horai.alert_rule rule join waiting on waiting.rule_id = rule.id join horai.job on job.id = waiting.job_id
    where rule.kind = 'JOB_LATE' and (rule.definition ->> 'job' is null or rule.definition ->> 'job' = job.name)
        and (rule.definition ->> 'tag' is null or rule.definition ->> 'tag' = any (job.tags))
    group by rule.tenant_id, rule.id, job.id
    union all
    select rule.tenant_id, rule.id, waiting.queue, null, null, '{}', min(waiting.due),
        json_build_object('queue', waiting.queue, 'instances', count(*), 'oldest', min(waiting.due))
    from horai.alert_rule rule join waiting on waiting.rule_id = rule.id
    where rule.kind = 'QUEUE_WAIT' and (rule.definition ->> 'queue' is null or rule.definition ->> 'queue' = waiting.queue)
    group by rule.tenant_id, rule.id, waiting.queue
    union all
    select rule.tenant_id, rule.id, beat.name, null, null, '{}', greatest(beat.last_at, beat.active_from) + beat.every + beat.grace,
        json_build_object('heartbeat', beat.name, 'lastAt', beat.last_at)
    from horai.alert_rule rule
    join horai.heartbeat beat on beat.tenant_id = rule.tenant_id
        and (rule.definition ->> 'heartbeat' is null or rule.definition ->> 'heartbeat' = beat.name)
    where rule.kind = 'HEARTBEAT_MISSING' and rule.is_enabled
        and greatest(beat.last_at, beat.active_from) + beat.every + beat.grace < clock_timestamp()
    union all
    select rule.tenant_id, rule.id, 'error budget', null, null, '{}', clock_timestamp(),
        json_build_object('started', level.started, 'late', level.late, 'burnRate', round((level.late / level.started / $1)::numeric, 1))
    from horai.alert_rule rule cross join lateral (
        select sum(started)::double precision as started, sum(started - on_time)::double precision as late from horai.sli_minute
        where at > clock_timestamp() - interval '1 hour'
    ) level
    where rule.kind = 'BUDGET_BURN' and rule.is_enabled and level.started >= 20
        and level.late / level.started / $1 >= (rule.definition ->> 'burnRate')::double precision
    union all
    select rule.tenant_id, rule.id, sink.name, null, null, '{}', coalesce(sink.failing_since, clock_timestamp()),
        json_build_object('sink', sink.name, 'kind', sink.kind, 'failures', sink.failures, 'error', sink.last_error)
    from horai.alert_rule rule
    join horai.sink on sink.tenant_id = rule.tenant_id and (rule.definition ->> 'sink' is null or rule.definition ->> 'sink' = sink.name)
    where rule.kind = 'SINK_PARKED' and rule.is_enabled and (sink.status = 'PARKED' or sink.status = 'PAUSED' and exists (
        select from horai.alert open where open.rule_id = rule.id and open.object = sink.name and open.resolved_at is null
    ))
    union all
    select rule.tenant_id, rule.id, part.table_name || ' ' || part.day, null, null, '{}', part.failing_since,
        json_build_object('table', part.table_name, 'day', part.day, 'tries', part.tries, 'error', part.error)
    from horai.alert_rule rule
    cross join (
        select * from horai.archive_partition where failed_at is not null and archived_at is null order by day, table_name limit 100
    ) part
    where rule.kind = 'ARCHIVE_FAILED' and rule.is_enabled
    union all
    select rule.tenant_id, rule.id, part.parent || ' ' || part.day, null, null, '{}', clock_timestamp(),
        json_build_object('table', part.parent, 'day', part.day, 'rows', part.rows)
    from horai.alert_rule rule
    cross join lateral (
        select missing.parent, missing.day, sum(missing.rows) as rows from (
            select parent, (clock_timestamp() at time zone 'UTC')::date + ahead as day, 0 as rows
            from unnest(array['instance_history', 'attempt', 'event', 'note']) as parent cross join generate_series(0, 1) as ahead
            where to_regclass('horai.' || parent || to_char((clock_timestamp() at time zone 'UTC')::date + ahead, '_YYYYMMDD')) is null
            union all
            select stray.parent, (stray.at at time zone 'UTC')::date, count(*) from (
                (select 'instance_history' as parent, finished_at as at from horai.instance_history_default where rule.id is not null limit 1000)
                union all (select 'attempt', finished_at from horai.attempt_default where rule.id is not null limit 1000)
                union all (select 'event', at from horai.event_default where rule.id is not null limit 1000)
                union all (select 'note', at from horai.note_default where rule.id is not null limit 1000)
            ) stray group by 1, 2
        ) missing group by 1, 2
    ) part
    where rule.kind = 'PARTITION_MISSING' and rule.is_enabled
), fired as (
    insert into horai.alert (tenant_id, rule_id, object, occurrence, job_id, job, tags, since, data)
    select tenant_id, rule_id, object, (extract(epoch from clock_timestamp()) * 1000000)::bigint, job_id, job, tags, since, data
    from found where not exists (
        select from horai.alert known where known.rule_id = found.rule_id and known.object = found.object and known.resolved_at is null
    )
    on conflict do nothing returning id
), resolved as (
    update horai.alert set resolved_at = clock_timestamp()
    from horai.alert_rule rule
    where rule.kind in ('JOB_LATE', 'QUEUE_WAIT', 'HEARTBEAT_MISSING', 'BUDGET_BURN', 'SINK_PARKED', 'ARCHIVE_FAILED', 'PARTITION_MISSING') and alert.rule_id = rule.id and alert.resolved_at is null
        and not exists (select from found where found.rule_id = alert.rule_id and found.object = alert.object)
    returning alert.id
), renewed as (
    update horai.alert set data = (alert.data::jsonb - 'causes' || found.data::jsonb)::json, acknowledged_data = coalesce(alert.acknowledged_data, found.data)
    from found
    where alert.rule_id = found.rule_id and alert.object = found.object and alert.resolved_at is null and alert.acknowledged_at is not null
        and (alert.acknowledged_data is null or not alert.data::jsonb @> found.data::jsonb)
    returning alert.id
)
select (select count(*) from fired) as fired, (select count(*) from resolved) as resolved, (select count(*) from renewed) as renewed;

-- name: evaluate_stuck
-- tenant: platform
-- RUN_STUCK and QUEUE_CLOGGED. The arguments are the stuck runs and clogged queues of all tenants with such a rule: tenant, kind, object,
-- job (null for a queue), since, data.
with found as materialized (
    select rule.tenant_id, rule.id as rule_id, given.object, job.id as job_id, job.name as job, coalesce(job.tags, '{}') as tags, given.since,
        given.data::json as data
    from unnest($1::integer[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::text[])
        as given(tenant_id, kind, object, job_id, since, data)
    join horai.alert_rule rule on rule.tenant_id = given.tenant_id and rule.kind = given.kind and rule.is_enabled
    left join horai.job on job.id = given.job_id
    where (rule.definition ->> 'job' is null or rule.definition ->> 'job' = job.name)
        and (rule.definition ->> 'tag' is null or rule.definition ->> 'tag' = any (job.tags))
        and (rule.definition ->> 'queue' is null or rule.definition ->> 'queue' = given.object)
), fired as (
    insert into horai.alert (tenant_id, rule_id, object, occurrence, job_id, job, tags, since, data)
    select tenant_id, rule_id, object, (extract(epoch from clock_timestamp()) * 1000000)::bigint, job_id, job, tags, since, data
    from found where not exists (
        select from horai.alert known where known.rule_id = found.rule_id and known.object = found.object and known.resolved_at is null
    )
    on conflict do nothing returning id
), resolved as (
    update horai.alert set resolved_at = clock_timestamp()
    from horai.alert_rule rule
    where rule.kind in ('RUN_STUCK', 'QUEUE_CLOGGED') and alert.rule_id = rule.id and alert.resolved_at is null
        and not exists (select from found where found.rule_id = alert.rule_id and found.object = alert.object)
    returning alert.id
)
select (select count(*) from fired) as fired, (select count(*) from resolved) as resolved;

-- name: evaluate_deadlines
-- tenant: platform
-- NOT_SUCCESS_BY. $1: rules, $2: the begin of the window of their last deadline, $3: that deadline. A SUCCESS counts if its slot is in the
-- window or after it, whenever it ended: a slot of the day before that ended late says nothing about today.
with found as materialized (
    select rule.tenant_id, rule.id as rule_id, job.id::text as object, job.id as job_id, job.name as job, job.tags, given.deadline as since,
        json_build_object('job', job.name, 'by', rule.definition ->> 'by', 'timezone', rule.definition ->> 'timezone',
            'deadline', given.deadline) as data
    from unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) as given(rule_id, begin, deadline)
    join horai.alert_rule rule on rule.id = given.rule_id and rule.is_enabled and given.deadline > rule.active_from
    join horai.job on job.tenant_id = rule.tenant_id and job.name = rule.definition ->> 'job' and job.deleted_at is null
    where not exists (
        select from horai.instance_history past where past.job_id = job.id and past.fire_time > given.begin and past.state = 2
    )
), fired as (
    insert into horai.alert (tenant_id, rule_id, object, occurrence, job_id, job, tags, since, data)
    select tenant_id, rule_id, object, (extract(epoch from since) * 1000000)::bigint, job_id, job, tags, since, data
    from found where not exists (
        select from horai.alert known where known.rule_id = found.rule_id and known.object = found.object and known.resolved_at is null
    )
    on conflict do nothing returning id
), resolved as (
    update horai.alert set resolved_at = clock_timestamp()
    from horai.alert_rule rule
    where rule.kind = 'NOT_SUCCESS_BY' and alert.rule_id = rule.id and alert.resolved_at is null
        and not exists (select from found where found.rule_id = alert.rule_id and found.object = alert.object)
    returning alert.id
)
select (select count(*) from fired) as fired, (select count(*) from resolved) as resolved;

-- name: store_alert_data
-- tenant: platform
update horai.alert set data = given.data::json from unnest($1::bigint[], $2::text[]) as given(id, data)
where alert.id = given.id and alert.closed_at is null;

-- name: lock_notifying
-- tenant: platform
-- One process decides what is sent. The lock ends with the transaction.
select pg_try_advisory_xact_lock(1215263330, 39) as is_locked;

-- name: open_alerts
-- tenant: platform
-- Those that were never told come first, then those that are resolved: however many still fire, news is not left out.
select id, rule_id, object, job, tags, data, since, fired_at, resolved_at, notified_at, silenced_by, acknowledged_at, acknowledged_data,
    clock_timestamp() as now
from horai.alert
where closed_at is null order by notified_at is null desc, resolved_at is not null desc, id limit $1;

-- name: silences_in_force
-- tenant: platform
select id, tenant_id, rule, job, tag, starts_at, ends_at from horai.alert_silence where ends_at > clock_timestamp() order by id;

-- name: mark_notified
-- tenant: platform
-- Alerts that were told, and are closed if $2.
update horai.alert set notified_at = clock_timestamp(), closed_at = case when $2 then clock_timestamp() end, silenced_by = null
where id = any ($1::bigint[]) and closed_at is null returning id;

-- name: mark_silenced
-- tenant: platform
update horai.alert set silenced_by = held.silence from unnest($1::bigint[], $2::bigint[]) as held(id, silence)
where alert.id = held.id and alert.closed_at is null;

-- name: end_acknowledgements
-- tenant: platform
-- Alerts that got worse are not acknowledged any more.
update horai.alert set acknowledged_at = null, acknowledged_by = null, acknowledged_note = null, acknowledged_data = null where id = any ($1::bigint[]);

-- name: close_alerts
-- tenant: platform
update horai.alert set closed_at = clock_timestamp() where id = any ($1::bigint[]) and closed_at is null;

-- name: forget_alerts
-- tenant: platform
with alerts as (
    delete from horai.alert where closed_at < clock_timestamp() - $1::interval
), silences as (
    delete from horai.alert_silence where ends_at < clock_timestamp() - $1::interval
)
delete from horai.alert_delivery where finished_at < clock_timestamp() - $1::interval;

-- name: plain_channels
-- tenant: platform
-- Channels of tenants whose secrets were stored before there was an encryption key.
select id, tenant_id, name, kind, language, version, config from horai.alert_channel
where tenant_id <> 0 and config -> 'hidden' is not null order by id limit $1;

-- name: store_sealed_channel
-- tenant: platform
-- The version stays: nothing that a reader sees has changed.
update horai.alert_channel set config = $3 where id = $1 and version = $2;

-- name: tenant_names
-- tenant: platform
select id, name from horai.tenant where id = any ($1::integer[]);
