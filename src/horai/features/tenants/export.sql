-- The data of a tenant, for its export: $1 the tenant, $2 and $3 the position (at, id) of the last row before, $4 rows and $5 bytes
-- at most. Each row is a JSON text; `secretive` has values that must be masked before they are shown.

-- name: export_jobs
-- tenant: $1
select at, id, body, secretive from (
    select at, id, body, secretive, sum(octet_length(body)) over (order by id) - octet_length(body) as before from (
        select job.created_at as at, job.id, json_build_object('kind', 'job', 'id', job.id::text, 'name', job.name,
            'status', case job.status when 0 then 'ACTIVE' else 'PAUSED' end, 'note', job.note, 'version', job.version,
            'createdAt', job.created_at, 'updatedAt', job.updated_at, 'payload', job.payload)::text as body, job.definition as secretive
        from horai.job where job.tenant_id = $1 and job.id > $3 and job.deleted_at is null and $2::timestamptz is not null
        order by job.id limit $4
    ) rows
) page where before < $5 order by id;

-- name: export_queues
-- tenant: $1
select at, id, body, secretive from (
    select queue.created_at as at, queue.id::bigint as id, json_build_object('kind', 'queue', 'name', queue.name,
        'priority', queue.priority, 'maxConcurrency', queue.max_concurrency, 'rateCount', queue.rate_count,
        'ratePer', extract(epoch from queue.rate_per), 'paused', queue.paused, 'note', queue.note,
        'title', queue.title, 'description', queue.description, 'owner', queue.owner,
        'declaredBy', queue.declared_by, 'version', queue.version)::text as body, null::json as secretive
    from horai.queue where queue.tenant_id = $1 and not queue.is_pool and queue.id > $3 and $2::timestamptz is not null order by queue.id limit $4
) page where octet_length(body) < $5 order by id;

-- name: export_calendars
-- tenant: $1
select at, id, body, secretive from (
    select at, id, body, secretive, sum(octet_length(body)) over (order by id) - octet_length(body) as before from (
        select calendar.created_at as at, calendar.id, json_build_object('kind', 'calendar', 'name', calendar.name, 'days', calendar.days,
            'version', calendar.version, 'createdAt', calendar.created_at, 'updatedAt', calendar.updated_at)::text as body,
            null::json as secretive
        from horai.calendar where calendar.tenant_id = $1 and calendar.id > $3 and $2::timestamptz is not null
        order by calendar.id limit $4
    ) rows
) page where before < $5 order by id;

-- name: export_workflows
-- tenant: $1
select at, id, body, secretive from (
    select at, id, body, secretive, sum(octet_length(body)) over (order by id) - octet_length(body) as before from (
        select workflow.created_at as at, workflow.id, json_build_object('kind', 'workflow', 'id', workflow.id::text, 'name', workflow.name,
            'jobId', workflow.job_id::text, 'nodes', workflow.nodes, 'version', workflow.version, 'createdAt', workflow.created_at)::text as body,
            null::json as secretive
        from horai.workflow where workflow.tenant_id = $1 and workflow.id > $3 and workflow.deleted_at is null
            and $2::timestamptz is not null
        order by workflow.id limit $4
    ) rows
) page where before < $5 order by id;

-- name: export_reconcilers
-- tenant: $1
select at, id, body, secretive from (
    select reconciler.created_at as at, reconciler.id, json_build_object('kind', 'reconciler', 'id', reconciler.id::text,
        'jobId', reconciler.job_id::text, 'targetId', reconciler.target_id::text, 'createdAt', reconciler.created_at)::text as body,
        reconciler.source as secretive
    from horai.reconciler where reconciler.tenant_id = $1 and reconciler.id > $3 and $2::timestamptz is not null
    order by reconciler.id limit $4
) page where octet_length(body) < $5 order by id;

-- name: export_alert_channels
-- tenant: $1
-- Without URLs and secrets.
select at, id, body, secretive from (
    select channel.created_at as at, channel.id, json_build_object('kind', 'alertChannel', 'name', channel.name, 'channelKind', channel.kind,
        'language', channel.language, 'host', channel.config -> 'host', 'port', channel.config -> 'port', 'from', channel.config -> 'from',
        'to', channel.config -> 'to', 'version', channel.version)::text as body, null::json as secretive
    from horai.alert_channel channel where channel.tenant_id = $1 and channel.id > $3 and $2::timestamptz is not null order by channel.id limit $4
) page where octet_length(body) < $5 order by id;

-- name: export_alert_rules
-- tenant: $1
select at, id, body, secretive from (
    select rule.created_at as at, rule.id, json_build_object('kind', 'alertRule', 'name', rule.name, 'ruleKind', rule.kind,
        'definition', rule.definition, 'channels', rule.channels, 'enabled', rule.is_enabled, 'version', rule.version)::text as body,
        null::json as secretive
    from horai.alert_rule rule where rule.tenant_id = $1 and rule.id > $3 and $2::timestamptz is not null order by rule.id limit $4
) page where octet_length(body) < $5 order by id;

-- name: export_sinks
-- tenant: $1
-- Without addresses and secrets.
select at, id, body, secretive from (
    select sink.created_at as at, sink.id, json_build_object('kind', 'sink', 'name', sink.name, 'sinkKind', sink.kind, 'types', sink.types,
        'batch', sink.batch, 'status', sink.status, 'version', sink.version)::text as body, null::json as secretive
    from horai.sink where sink.tenant_id = $1 and sink.id > $3 and $2::timestamptz is not null order by sink.id limit $4
) page where octet_length(body) < $5 order by id;

-- name: export_heartbeats
-- tenant: $1
select at, id, body, secretive from (
    select beat.created_at as at, beat.id, json_build_object('kind', 'heartbeat', 'name', beat.name, 'everySeconds', extract(epoch from beat.every),
        'graceSeconds', extract(epoch from beat.grace), 'lastAt', beat.last_at)::text as body, null::json as secretive
    from horai.heartbeat beat where beat.tenant_id = $1 and beat.id > $3 and $2::timestamptz is not null order by beat.id limit $4
) page where octet_length(body) < $5 order by id;

-- name: refresh_jobs
-- tenant: $1
-- The tenant's jobs with entities, after the job $2.
select id from horai.job where tenant_id = $1 and id > $2 and deleted_at is null and (definition -> 'refresh') is not null order by id limit $3;

-- name: export_entities
-- tenant: $1
-- The entities of the tenant's job $2 after the key $3.
select key, body from (
    select key, body, sum(octet_length(body)) over (order by key) - octet_length(body) as before from (
        select entity.key, json_build_object('kind', 'entity', 'jobId', entity.job_id::text, 'key', entity.key, 'status', entity.status,
            'createdAt', entity.create_time, 'finishedAt', entity.finish_time, 'payload', entity.payload)::text as body
        from horai.entity join horai.job on job.id = entity.job_id
        where job.tenant_id = $1 and entity.job_id = $2 and entity.key > $3 order by entity.key limit $4
    ) rows
) page where before < $5 order by key;

-- name: export_live
-- tenant: $1
select at, id, body, secretive from (
    select at, id, body, secretive, sum(octet_length(body)) over (order by at, id) - octet_length(body) as before from (
        select live.fire_time as at, live.id, json_build_object('kind', 'instance', 'id', live.id::text, 'jobId', live.job_id::text,
            'key', live.key, 'state', horai.state_name(live.state), 'fireTime', live.fire_time, 'executeTime', live.execute_time,
            'version', live.version, 'attempt', live.attempt, 'retryCount', live.retry_count, 'fence', live.fence,
            'errorCode', live.error_code, 'errorMsg', live.error_msg, 'createdAt', live.created_at, 'payload', live.payload)::text as body,
            null::json as secretive
        from horai.instance_live live where live.tenant_id = $1 and (live.fire_time, live.id) > ($2::timestamptz, $3)
        order by live.fire_time, live.id limit $4
    ) rows
) page where before < $5 order by at, id;

-- name: export_history
-- tenant: $1
select at, id, body, secretive from (
    select at, id, body, secretive, sum(octet_length(body)) over (order by at, id) - octet_length(body) as before from (
        select past.fire_time as at, past.id, json_build_object('kind', 'history', 'id', past.id::text, 'jobId', past.job_id::text,
            'key', past.key, 'state', horai.state_name(past.state), 'fireTime', past.fire_time, 'executeTime', past.execute_time,
            'version', past.version, 'attempt', past.attempt, 'retryCount', past.retry_count, 'fence', past.fence,
            'errorCode', past.error_code, 'errorMsg', past.error_msg, 'createdAt', past.created_at, 'finishedAt', past.finished_at,
            'payload', past.payload, 'result', past.result)::text as body, null::json as secretive
        from horai.instance_history past where past.tenant_id = $1 and (past.fire_time, past.id) > ($2::timestamptz, $3)
        order by past.fire_time, past.id limit $4
    ) rows
) page where before < $5 order by at, id;

-- name: export_letters
-- tenant: $1
-- Each letter has what a replay needs of its instance, if that is kept: `horai import` carries it to another cluster.
select at, id, body, secretive from (
    select at, id, body, secretive, sum(octet_length(body)) over (order by at, id) - octet_length(body) as before from (
        select letter.created_at as at, letter.id, json_build_object('kind', 'deadLetter', 'id', letter.id::text, 'jobId', letter.job_id::text,
            'job', job.name, 'instanceId', letter.instance_id::text, 'errorCode', letter.error_code, 'errorMsg', letter.error_msg,
            'tags', letter.tags, 'fingerprint', letter.fingerprint, 'replayStatus', letter.replay_status, 'createdAt', letter.created_at,
            'isKept', past.id is not null, 'key', past.key, 'fireTime', past.fire_time, 'executeTime', past.execute_time,
            'version', past.version, 'fence', past.fence, 'payload', past.payload)::text as body, null::json as secretive
        from horai.dead_letter letter join horai.job on job.id = letter.job_id
        left join horai.instance_history past on past.id = letter.instance_id
        where letter.tenant_id = $1 and (letter.created_at, letter.id) > ($2::timestamptz, $3)
        order by letter.created_at, letter.id limit $4
    ) rows
) page where before < $5 order by at, id;

-- name: export_writes
-- tenant: $1
-- The audit log. Its values are masked when they are stored.
select at, id, body, secretive from (
    select audit.at, audit.id, json_build_object('kind', 'audit', 'id', audit.id::text, 'at', audit.at, 'actorKind', audit.actor_kind,
        'actorId', audit.actor_id, 'actorName', audit.actor_name, 'address', audit.address, 'verb', audit.verb, 'objectKind', audit.object_kind,
        'objectId', audit.object_id, 'objectName', audit.object_name, 'before', audit.before, 'after', audit.after,
        'counts', audit.counts)::text as body, null::json as secretive
    from horai.audit where audit.tenant_id = $1 and (audit.at, audit.id) > ($2::timestamptz, $3) order by audit.at, audit.id limit $4
) page where octet_length(body) < $5 order by at, id;

-- name: export_archive_files
-- tenant: $1
-- The files themselves are not in the export.
select at, id, body, secretive from (
    select file.archived_at as at, file.id, json_build_object('kind', 'archiveFile', 'table', file.table_name, 'day', file.day, 'path', file.path,
        'rows', file.rows, 'bytes', file.bytes, 'sha256', file.sha256)::text as body, null::json as secretive
    from horai.archive_file file where file.tenant_id = $1 and file.id > $3 and $2::timestamptz is not null order by file.id limit $4
) page where octet_length(body) < $5 order by id;
