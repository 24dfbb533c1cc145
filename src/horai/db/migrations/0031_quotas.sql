-- Quotas and life of tenants (docs/guides/tenants.md, docs/decisions/0040-quotas-cost-only-tenants-that-have-them.md).

-- version: of the settings that the platform changes. paused_at: the platform holds all dispatch of the tenant. deleting_at: the
-- tenant is being deleted; its keys are revoked and its rows go in batches.
alter table horai.tenant
    add column version bigint not null default 1,
    add column paused_at timestamptz,
    add column deleting_at timestamptz,
    add constraint tenant_is_paused_while_deleted check (deleting_at is null or paused_at is not null);

-- A null column is no limit; a tenant without a row has none. The last five columns are the state of the limits:
-- (tokens, refilled_at) is the bucket of enqueue_per_second; the live instances are estimated as live_counted, which a stage counts
-- from time to time, plus live_charged, which were added since that count began.
create table horai.tenant_quota (
    tenant_id integer primary key references horai.tenant,
    jobs integer check (jobs between 0 and 10000000),
    live_instances bigint check (live_instances between 0 and 1000000000),
    enqueue_per_second integer check (enqueue_per_second between 1 and 1000000),
    payload_bytes integer check (payload_bytes between 1 and 1048576),
    callback_networks cidr[],
    tokens double precision not null default 0,
    refilled_at timestamptz not null default clock_timestamp(),
    live_counted bigint not null default 0,
    live_charged bigint not null default 0,
    counted_at timestamptz not null default '-infinity'
) with (fillfactor = 50);
revoke all on horai.tenant_quota from public;

-- Whether the server has keys, for sessions that may not read keys. With the rights of the owner.
create function horai.is_keyed() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select exists (select from horai.access_state)
$$;

-- Raise an error of a quota. The detail has its figures for clients that translate the message.
create function horai.refuse_quota(code text, said text, hint text, figures json) returns void
language plpgsql set search_path = pg_catalog as $$
begin
    raise exception using errcode = code, message = said, hint = hint, detail = figures::text;
end $$;

-- Refuse a payload that is larger than the tenant's quota. Reads without a lock: a smaller quota holds for later writes.
create function horai.check_payload_quota(tenant integer, bytes integer) returns void
language plpgsql set search_path = pg_catalog as $$
declare
    most integer := (select payload_bytes from horai.tenant_quota where tenant_id = check_payload_quota.tenant);
begin
    if bytes > most then
        perform horai.refuse_quota('HR413',
            format('The payload has %s bytes, and the quota payloadBytes of the tenant allows %s.', bytes, most),
            'Keep large data elsewhere and send a reference, or ask the platform for a larger quota.',
            json_build_object('quota', 'payloadBytes', 'limit', most, 'now', bytes));
    end if;
end $$;

-- Charge new instances to the quotas of their tenant, or refuse all of them. The statements call it only for jobs that are
-- `metered`. The row lock is held until commit, so two transactions that add instances of one tenant are decided one after the
-- other. A request that is larger than the bucket needs a full one and leaves a debt: in the long run, the rate holds.
-- With the rights of the owner: requests may not write the quotas. The session of one tenant cannot charge another.
create function horai.charge(tenant integer, instances bigint, largest integer) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    served text := nullif(current_setting('horai.tenant_id', true), '');
    quota horai.tenant_quota;
    asked_at timestamptz;
    filled float8;
    wanted float8;
begin
    if served <> tenant::text then
        raise exception using errcode = 'insufficient_privilege',
            message = format('The session serves tenant %s and cannot charge tenant %s.', served, tenant);
    end if;
    if exists (select from horai.tenant where tenant.id = charge.tenant and tenant.deleting_at is not null) then
        perform horai.refuse('HR404', 'The tenant is being deleted.', 'Nothing can be added to it.', 'tenant');
    end if;
    perform horai.check_payload_quota(tenant, largest);
    select * into quota from horai.tenant_quota
    where tenant_id = charge.tenant and (enqueue_per_second is not null or live_instances is not null) for no key update;
    if not found then
        return true;
    end if;
    if quota.live_counted + quota.live_charged + instances > quota.live_instances then
        perform horai.refuse_quota('HR429',
            format('The tenant has %s live instances, and its quota liveInstances allows %s; %s more were requested.',
                quota.live_counted + quota.live_charged, quota.live_instances, instances),
            'Nothing was written. Try again when instances have ended, or ask the platform for a larger quota.',
            json_build_object('quota', 'liveInstances', 'limit', quota.live_instances, 'now', quota.live_counted + quota.live_charged,
                'asked', instances, 'retryAfter', 1));
    end if;
    asked_at := greatest(clock_timestamp(), quota.refilled_at);
    filled := least(quota.enqueue_per_second,
        quota.tokens + extract(epoch from asked_at - quota.refilled_at)::float8 * quota.enqueue_per_second);
    wanted := least(instances, quota.enqueue_per_second);
    if filled < wanted then
        perform horai.refuse_quota('HR429',
            format('The quota enqueuePerSecond of the tenant allows %s instances per second; %s more were requested.',
                quota.enqueue_per_second, instances),
            'Nothing was written. Try again after Retry-After seconds, or ask the platform for a larger quota.',
            json_build_object('quota', 'enqueuePerSecond', 'limit', quota.enqueue_per_second, 'asked', instances,
                'retryAfter', ceil((wanted - filled) / quota.enqueue_per_second)));
    end if;
    update horai.tenant_quota set tokens = coalesce(filled - instances, tokens), refilled_at = asked_at,
        live_charged = live_charged + instances
    where tenant_id = charge.tenant;
    return true;
end $$;

-- Charge one instance for each of these jobs, whose tenants may or may not have quotas.
create function horai.charge_jobs(job_ids bigint[], largest integer) returns void
language plpgsql volatile set search_path = pg_catalog as $$
declare
    charged record;
begin
    for charged in
        select job.tenant_id, count(*) as instances from unnest(job_ids) as added(job_id) join horai.job on job.id = added.job_id
        where job.metered group by job.tenant_id order by job.tenant_id
    loop
        perform horai.charge(charged.tenant_id, charged.instances, largest);
    end loop;
end $$;

-- metered: new instances of the job are charged to its tenant. A statement that adds instances reads the job anyway, so that a
-- tenant without quotas pays nothing.
alter table horai.job add column metered boolean not null default false;

create function horai.is_metered(tenant integer) returns boolean
language sql stable set search_path = pg_catalog as $$
    select exists (select from horai.tenant_quota quota where quota.tenant_id = is_metered.tenant
            and (live_instances is not null or enqueue_per_second is not null or payload_bytes is not null))
        or exists (select from horai.tenant where tenant.id = is_metered.tenant and deleting_at is not null)
$$;

-- A new job or queue of a tenant waits for a change of the tenant, and the change for it. Advisory locks, which end with the
-- transaction: requests may not update the tenant, so they cannot lock its row.
create function horai.share_tenant(tenant integer) returns void
language sql volatile set search_path = pg_catalog as $$
    select pg_advisory_xact_lock_shared(1215263333, tenant)
$$;
create function horai.hold_tenant(tenant integer) returns void
language sql volatile set search_path = pg_catalog as $$
    select pg_advisory_xact_lock(1215263333, tenant)
$$;

-- A new job. The lock on the tenant orders it against a change of the quotas, which marks the tenant's jobs. With the quota
-- `jobs`, the second lock makes creators wait for each other, so that the count is exact. Tick jobs belong to their refresh jobs.
create function horai.admit_job() returns trigger
language plpgsql set search_path = pg_catalog as $$
declare
    most integer;
    known bigint;
begin
    perform horai.share_tenant(new.tenant_id);
    if (select deleting_at is not null from horai.tenant where id = new.tenant_id) then
        perform horai.refuse('HR404', 'The tenant is being deleted.', 'Nothing can be added to it.', 'tenant');
    end if;
    if not exists (select from horai.tenant_quota where tenant_id = new.tenant_id) then
        return new;
    end if;
    new.metered := horai.is_metered(new.tenant_id);
    perform horai.check_payload_quota(new.tenant_id, octet_length(new.payload::text));
    if new.name like '%:refresh' then
        return new;
    end if;
    select jobs into most from horai.tenant_quota where tenant_id = new.tenant_id;
    if most is not null then
        perform pg_advisory_xact_lock(1215263334, new.tenant_id);
        select count(*) into known from horai.job where tenant_id = new.tenant_id and deleted_at is null and ticks_for is null;
        if known >= most then
            perform horai.refuse_quota('HR422',
                format('The tenant has %s jobs, and its quota jobs allows %s.', known, most),
                'Delete jobs that are no longer used, or ask the platform for a larger quota.',
                json_build_object('quota', 'jobs', 'limit', most, 'now', known));
        end if;
    end if;
    return new;
end $$;
create trigger job_is_admitted before insert on horai.job for each row execute function horai.admit_job();

create function horai.check_job_payload() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    perform horai.check_payload_quota(new.tenant_id, octet_length(new.payload::text));
    return new;
end $$;
create trigger job_payload_fits before update of payload on horai.job for each row
when (new.metered and new.payload is not null and new.payload::text is distinct from old.payload::text)
execute function horai.check_job_payload();

-- metered: that of the job. The functions that find the job of a call read it with the job, so that a call for an unmetered job
-- sends no statement more.
alter type horai.wish add attribute metered boolean;

create or replace function horai.place_of(reference text) returns horai.wish
language plpgsql as $$
declare
    isolation text := current_setting('transaction_isolation');
    caller record;
    job_name text;
    place horai.wish;
begin
    if isolation in ('repeatable read', 'serializable') then
        perform horai.refuse('HR422',
            format('The transaction is %s; instances are added and cancelled under READ COMMITTED only.', upper(isolation)),
            'What others have committed since it began must be seen. Use a transaction of its own for this.');
    end if;
    caller := horai.caller_place();
    place.tenant_id := caller.tenant_id;
    if reference ~ '^[0-9]{1,18}$' then
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload, job.name, job.metered
        into place.job_id, place.lane, place.job_payload, job_name, place.metered
        from horai.job where job.tenant_id = place.tenant_id and job.id = reference::bigint and job.deleted_at is null for key share;
    else
        select job.id, case when job.status = 0 then job.lane_id else 0 end, job.payload, job.name, job.metered
        into place.job_id, place.lane, place.job_payload, job_name, place.metered
        from horai.job where job.tenant_id = place.tenant_id and job.name = reference and job.deleted_at is null for key share;
    end if;
    if not found or job_name <> all (caller.jobs) then
        perform horai.refuse('HR404', format('There is no job %L.', left(coalesce(reference, ''), 128)),
            format('`horai jobs list` has the jobs; the tenant asked is %L (setting horai.tenant).', left(caller.tenant_name, 128)), 'job');
    end if;
    return place;
end $$;

create or replace function horai.follow_entity(tenant text, job text, old_key text, new_key text, payload jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place horai.wish;
begin
    select followed.id, followed.tenant_id, case when followed.status = 0 then followed.lane_id else 0 end, followed.payload, followed.metered
    into place.job_id, place.tenant_id, place.lane, place.job_payload, place.metered
    from horai.job followed join horai.tenant owner on owner.id = followed.tenant_id
    where owner.name = follow_entity.tenant and followed.name = follow_entity.job and followed.deleted_at is null
        and (followed.definition -> 'refresh') is not null
    for key share of followed;
    if not found then
        return;
    end if;
    if old_key is distinct from new_key and old_key is not null then
        perform horai.drop_entity(place.job_id, old_key);
    end if;
    if new_key is not null then
        perform horai.check_key(new_key);
        perform horai.keep_entities(place, array[new_key], array[horai.checked_payload(follow_entity.payload::json)]);
    end if;
end $$;

-- The SQL functions that add instances or payloads ask the quotas first. The text is added to the bodies that they have now, and
-- the migration fails if a body has changed so that it does not fit.
do $$
declare
    asking record;
    written text;
begin
    for asking in
        select * from (values
            ('insert_wish', E'\nbegin\n', E'\nbegin\n'
                '    if wish.metered then\n'
                '        perform horai.charge(wish.tenant_id, 1, octet_length(wish.payload::text));\n'
                '    end if;\n'),
            ('put_over_live', E'\nbegin\n', E'\nbegin\n'
                '    if wish.metered and wish.payload is not null then\n'
                '        perform horai.check_payload_quota(wish.tenant_id, octet_length(wish.payload::text));\n'
                '    end if;\n'),
            ('run_added', E'\nbegin\n', E'\nbegin\n'
                '    if place.metered then\n'
                '        perform horai.charge(place.tenant_id, cardinality(added), null);\n'
                '    end if;\n'),
            ('keep_entities', E'\nbegin\n', E'\nbegin\n'
                '    if place.metered then\n'
                '        perform horai.check_payload_quota(place.tenant_id,\n'
                '            (select max(octet_length(given.payload::text)) from unnest(payloads) as given(payload)));\n'
                '    end if;\n'),
            ('enqueue_many_json', E'\n    place := horai.place_of(job);\n', E'\n    place := horai.place_of(job);\n'
                '    if place.metered then\n'
                '        perform horai.charge(place.tenant_id, cardinality(payloads),\n'
                '            (select max(octet_length(given.payload::text)) from unnest(payloads) as given(payload)));\n'
                '    end if;\n')
        ) as known(name, before, after)
    loop
        select pg_get_functiondef(oid) into strict written from pg_proc
        where proname = asking.name and pronamespace = 'horai'::regnamespace;
        if position(asking.before in written) = 0 then
            raise exception 'the body of horai.% has no place for the check of quotas', asking.name;
        end if;
        execute overlay(written placing asking.after from position(asking.before in written) for length(asking.before));
    end loop;
end $$;

revoke execute on function
    horai.is_keyed, horai.refuse_quota, horai.check_payload_quota, horai.charge, horai.charge_jobs, horai.is_metered,
    horai.share_tenant, horai.hold_tenant, horai.admit_job, horai.check_job_payload
from public;

-- held: the platform has paused the tenant. A queue that appears meanwhile is held as well; the lock orders it against the pause.
alter table horai.queue add column held boolean not null default false;
create function horai.hold_new_queue() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    perform horai.share_tenant(new.tenant_id);
    new.held := (select paused_at is not null from horai.tenant where id = new.tenant_id);
    return new;
end $$;
revoke execute on function horai.hold_new_queue from public;
create trigger queue_is_held before insert on horai.queue for each row execute function horai.hold_new_queue();

drop index horai.queue_closed;
create index queue_closed on horai.queue (id) where max_concurrency is not null or paused or held;
create or replace function horai.open_lanes(lanes integer[]) returns integer[]
language plpgsql volatile set search_path = pg_catalog as $$
declare
    entered integer[];
begin
    entered := array(
        select lane.id from (select distinct unnest(lanes) as id) asked join horai.lane on lane.id = asked.id
        where pg_try_advisory_xact_lock_shared(1215263329, lane.queue_id));
    if not exists (select from horai.queue where max_concurrency is not null or paused or held) then
        return entered;
    end if;
    return array(
        select inside.id from unnest(entered) as inside(id) where not exists (
            select from horai.lane join horai.queue on queue.id = lane.queue_id
            where lane.id = inside.id and (queue.max_concurrency is not null or queue.paused or queue.held)));
end $$;

-- Delete up to `most` rows of each table of a tenant that is being deleted, and return how many; 0 when only the tenant's own row
-- is left. Rows that belong to an instance, a job or another row are found by it and go before it. Every other table with a
-- tenant_id follows, the newest first; a row that another row refers to waits for the next call. The audit log stays.
create function horai.erase_some(tenant integer, most integer) returns bigint
language plpgsql volatile set search_path = pg_catalog as $$
declare
    ids bigint[];
    erased bigint := 0;
    touched bigint;
    part record;
    is_blocked boolean := false;
begin
    if not exists (select from horai.tenant where tenant.id = erase_some.tenant and tenant.deleting_at is not null) then
        raise exception 'tenant % is not being deleted', erase_some.tenant;
    end if;
    ids := array(select id from horai.instance_live where tenant_id = erase_some.tenant limit most)
        || array(select id from horai.instance_history where tenant_id = erase_some.tenant limit most);
    delete from horai.note where instance_id = any (ids);
    delete from horai.attempt where instance_id = any (ids);
    delete from horai.event where instance_id = any (ids);
    delete from horai.backfill_instance where instance_id = any (ids);
    delete from horai.instance_live where id = any (ids);
    delete from horai.instance_history where id = any (ids);
    erased := erased + cardinality(ids);

    for part in
        select * from (values ('entity', 'job', 'job_id'), ('refresh_batch', 'job', 'job_id'), ('catchup', 'job', 'job_id'),
            ('skip', 'job', 'job_id'), ('source_event', 'job', 'job_id'), ('queue_slot', 'queue', 'queue_id'),
            ('backfill_instance', 'backfill', 'backfill_id'), ('workflow_node', 'workflow_run', 'run_id'),
            ('workflow_job', 'workflow', 'workflow_id'), ('reconcile_seen', 'reconcile_report', 'report_id')
        ) as known(name, owner, reference)
    loop
        execute format('delete from horai.%1$I where ctid = any (array(select own.ctid from horai.%1$I own '
            'join horai.%2$I owner on owner.id = own.%3$I where owner.tenant_id = $1 and own.tenant_id = $1 limit $2))',
            part.name, part.owner, part.reference) using tenant, most;
        get diagnostics touched = row_count;
        erased := erased + touched;
    end loop;
    if erased > 0 then
        return erased;
    end if;
    for part in
        select class.relname as name, class.relkind = 'p' as is_divided from pg_class class
        join pg_attribute member on member.attrelid = class.oid and member.attname = 'tenant_id' and not member.attisdropped
        where class.relnamespace = 'horai'::regnamespace and class.relkind in ('r', 'p') and not class.relispartition
            and class.relname not like 'audit%'
        order by class.oid desc
    loop
        begin
            execute format(case when part.is_divided
                then 'delete from horai.%1$I where tenant_id = $1 and (tableoid, ctid) in '
                    '(select tableoid, ctid from horai.%1$I where tenant_id = $1 limit $2)'
                else 'delete from horai.%1$I where ctid = any (array(select ctid from horai.%1$I where tenant_id = $1 limit $2))'
                end, part.name) using tenant, most;
            get diagnostics touched = row_count;
            erased := erased + touched;
        exception when foreign_key_violation then
            is_blocked := true;
        end;
    end loop;
    if erased = 0 and is_blocked then
        raise exception 'rows of tenant % are referred to by rows that erase_some does not delete', erase_some.tenant;
    end if;
    return erased;
end $$;
revoke execute on function horai.erase_some from public;
