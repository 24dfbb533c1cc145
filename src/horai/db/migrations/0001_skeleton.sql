-- The shape of the store (docs/concepts/storage.md has the reasons and the measurements).
-- Two tables hold instances: instance_live only what may still change, instance_history what is final.

create table horai.tenant (
    id integer generated always as identity primary key,
    name text collate "C" not null unique,
    created_at timestamptz not null default clock_timestamp()
);

create table horai.signing_secret (
    id bigint generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    secret text not null,
    created_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz
);
create index signing_secret_tenant on horai.signing_secret (tenant_id);

-- Two version 4 UUIDs are 244 random bits from the server's strong source: no default secret, and no extension.
with made as (insert into horai.tenant (name) values ('default') returning id)
insert into horai.signing_secret (tenant_id, secret)
select id, 'whsec_' || encode(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 'base64') from made;

-- What a process can run is a set of lanes. Lane 0 is the parking lane: nobody claims from it.
create table horai.lane (
    id integer generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    queue text collate "C" not null,
    priority smallint not null,
    handler text collate "C" not null,
    unique (tenant_id, queue, priority, handler)
);

-- One row per distinct calendar, shared by all jobs that follow it. (fire_time, last_job) is the cursor: the slot being
-- made and the last job it was made for. A null fire_time sleeps: no active job follows it, or it never fires again.
create table horai.schedule (
    id bigint generated always as identity primary key,
    identity text collate "C" not null unique,
    spec json not null,
    fire_time timestamptz,
    last_job bigint not null default 0
);
create index schedule_fire_time on horai.schedule (fire_time) where fire_time is not null;

-- Slots that were not made, as ranges; job_id is null where it holds for every job of the schedule.
create table horai.skip (
    id bigint generated always as identity primary key,
    schedule_id bigint not null references horai.schedule,
    job_id bigint,
    from_time timestamptz not null,
    to_time timestamptz not null,
    slots bigint,
    reason text not null,
    at timestamptz not null default clock_timestamp()
);
create index skip_schedule on horai.skip (schedule_id, from_time);
create index skip_job on horai.skip (job_id, from_time) where job_id is not null;

-- status: 0 ACTIVE, 1 PAUSED. A slot is made for a job only when its fire_time is after active_from.
-- relane: its waiting instances have to be moved (pause, resume, another queue) or cancelled (deleted); done in batches.
create table horai.job (
    id bigint generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    name text collate "C" not null,
    status smallint not null default 0,
    schedule_id bigint references horai.schedule,
    lane_id integer not null references horai.lane,
    active_from timestamptz not null default clock_timestamp(),
    version bigint not null default 1,
    relane boolean not null default false,
    definition json not null,
    payload json,
    tags text[] not null default '{}',
    note text,
    paused_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    deleted_at timestamptz
);
create unique index job_name on horai.job (tenant_id, name) where deleted_at is null;
create index job_schedule on horai.job (schedule_id, id) where schedule_id is not null and status = 0 and deleted_at is null;

create index job_relane on horai.job (id) where relane;

create sequence horai.instance_id cache 32;

-- due: when it may be claimed; never written in the past. execute_time: when the user wants it.
-- slot: the generation of a schedule slot, -id for every other instance: makes (job_id, fire_time, slot) unique.
-- born_for: the fire_time at birth, which idem_key is made of for life. events: how many event rows it has written.
-- No index mentions a column that a claim changes, so that claims are HOT updates; fillfactor leaves them room.
create table horai.instance_live (
    id bigint primary key,
    job_id bigint not null,
    due timestamptz not null,
    fire_time timestamptz not null,
    execute_time timestamptz not null,
    born_for timestamptz not null,
    slot bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    fence bigint not null default 0,
    claimed_at timestamptz,
    node bigint,
    claim bigint,
    version bigint,
    supersedes bigint,
    replay_of bigint,
    tenant_id integer not null,
    lane integer not null,
    attempt integer not null default 0,
    retry_count integer not null default 0,
    events integer not null default 0,
    shard smallint not null,
    state smallint not null default 0,
    key text collate "C",
    error_code text,
    error_msg text,
    payload json,
    constraint instance_live_is_live check (state in (0, 1, 3, 6)),
    constraint instance_live_running_has_owner
        check ((state = 1) = (node is not null) and (state = 1) = (claimed_at is not null) and (state = 1) = (claim is not null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create index instance_live_lane on horai.instance_live (shard, lane, due, id);
create unique index instance_live_slot on horai.instance_live (job_id, fire_time, slot);
create unique index instance_live_key on horai.instance_live (job_id, key) where key is not null;
create index instance_live_tenant on horai.instance_live (tenant_id, fire_time, id);

create table horai.instance_history (
    id bigint not null,
    job_id bigint not null,
    fire_time timestamptz not null,
    execute_time timestamptz not null,
    born_for timestamptz not null,
    slot bigint not null,
    created_at timestamptz not null,
    claimed_at timestamptz,
    finished_at timestamptz not null,
    fence bigint not null,
    node bigint,
    version bigint,
    supersedes bigint,
    replay_of bigint,
    tenant_id integer not null,
    lane integer not null,
    attempt integer not null,
    retry_count integer not null,
    events integer not null,
    state smallint not null,
    reason smallint,
    key text collate "C",
    error_code text,
    error_msg text,
    payload json,
    result json,
    constraint instance_history_is_final check (state in (2, 4, 5)),
    constraint instance_history_cancelled_has_reason check ((state = 5) = (reason is not null))
) partition by range (finished_at);
create index instance_history_id on horai.instance_history (id);
create index instance_history_job on horai.instance_history (job_id, fire_time, id);
create index instance_history_tenant on horai.instance_history (tenant_id, fire_time, id);
create index instance_history_key on horai.instance_history (job_id, key) where key is not null;

-- Only attempts that failed or came late: a success is told by its history row.
create table horai.attempt (
    instance_id bigint not null,
    job_id bigint not null,
    tenant_id integer not null,
    attempt integer not null,
    fence bigint not null,
    node bigint,
    started_at timestamptz,
    finished_at timestamptz not null,
    late boolean not null default false,
    outcome text not null,
    error_code text,
    error_msg text
) partition by range (finished_at);
create index attempt_instance on horai.attempt (instance_id, attempt);

-- What happened, in the transaction in which it happened. seq counts an instance's state changes from 1 without gaps;
-- null for what changes no state (late results, definitions). A success has no row here: its history row is the event.
create table horai.event (
    id bigint generated always as identity,
    tenant_id integer not null,
    job_id bigint,
    instance_id bigint,
    seq integer,
    at timestamptz not null default clock_timestamp(),
    kind text not null,
    data json
) partition by range (at);
create index event_instance on horai.event (instance_id, seq) where instance_id is not null;
create index event_job on horai.event (job_id, id) where job_id is not null;

create table horai.dead_letter (
    id bigint generated always as identity primary key,
    tenant_id integer not null,
    job_id bigint not null,
    instance_id bigint not null unique,
    error_code text not null,
    error_msg text,
    tags text[] not null default '{}',
    replay_status text not null default 'NEW' check (replay_status in ('NEW', 'REPLAYED', 'SUPERSEDED', 'DISCARDED')),
    created_at timestamptz not null default clock_timestamp()
);
create index dead_letter_tenant on horai.dead_letter (tenant_id, created_at, id);

create table horai.idempotency_key (
    tenant_id integer not null,
    scope text collate "C" not null,
    key text collate "C" not null,
    request_hash bytea not null,
    job_id bigint,
    instance_id bigint,
    created_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, scope, key)
);
create index idempotency_key_created on horai.idempotency_key (created_at);

-- A node is an incarnation: every boot has a new one. fenced_at: it missed its lease, its claims are refused from then on.
-- rescued_at: all it held has been given back.
create table horai.node (
    incarnation bigint generated always as identity primary key,
    name text not null,
    host text not null,
    pid integer not null,
    version text not null,
    started_at timestamptz not null default clock_timestamp(),
    lease_until timestamptz not null,
    stopped_at timestamptz,
    fenced_at timestamptz,
    rescued_at timestamptz
);

-- Partitions are made a week ahead by horai.make_partitions; the default one only catches what nobody expected. A day
-- with rows there gets no partition any more: the days after it must.
create table horai.instance_history_default partition of horai.instance_history default;
create table horai.attempt_default partition of horai.attempt default;
create table horai.event_default partition of horai.event default;

create function horai.make_partitions(first_day date, days integer) returns integer
language plpgsql set search_path = pg_catalog as $$
declare
    made integer := 0;
    parent text;
    day date;
begin
    foreach parent in array array['instance_history', 'attempt', 'event'] loop
        for step in 0 .. days - 1 loop
            day := first_day + step;
            if to_regclass(format('horai.%I', parent || to_char(day, '_YYYYMMDD'))) is null then
                begin
                    execute format(
                        'create table horai.%I partition of horai.%I for values from (%L) to (%L)',
                        parent || to_char(day, '_YYYYMMDD'), parent,
                        (day::timestamp at time zone 'UTC')::text, ((day + 1)::timestamp at time zone 'UTC')::text);
                    made := made + 1;
                exception when check_violation then
                    raise warning 'horai.% of % has strays in its default partition', parent, day;
                end;
            end if;
        end loop;
    end loop;
    return made;
end $$;

create function horai.idem_key(job_id bigint, born_for timestamptz, slot bigint) returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
    select job_id || ':' || (floor(extract(epoch from born_for) * 1000))::bigint
        || case when slot = 0 then '' when slot > 0 then ':' || slot else ':' || -slot end
$$;

create function horai.state_name(state smallint) returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
    select (array['INIT', 'RUNNING', 'SUCCESS', 'FAIL', 'DEAD', 'CANCELLED', 'BLOCKED'])[state + 1]
$$;

-- The public views, with the columns of seed 002 §7.
create view horai.job_definition as
select j.id as job_id, t.name as tenant_id, j.name, j.definition ->> 'cron' as cron,
    coalesce(j.definition ->> 'timezone', 'UTC') as timezone,
    case j.status when 0 then 'ACTIVE' else 'PAUSED' end as status,
    coalesce(j.definition ->> 'priority', 'normal') as priority,
    j.definition -> 'retry' as retry_policy, j.created_at, j.updated_at
from horai.job j join horai.tenant t on t.id = j.tenant_id
where j.deleted_at is null;

create view horai.job_instance as
select l.id as instance_id, l.job_id, l.tenant_id, l.key, l.fire_time, l.execute_time, horai.state_name(l.state) as state, l.attempt,
    l.retry_count, l.fence, l.node as worker_id, horai.idem_key(l.job_id, l.born_for, l.slot) as idem_key,
    l.created_at, null::timestamptz as finished_at, l.error_code, l.error_msg, l.updated_at
from horai.instance_live l
union all
select h.id, h.job_id, h.tenant_id, h.key, h.fire_time, h.execute_time, horai.state_name(h.state), h.attempt,
    h.retry_count, h.fence, h.node, horai.idem_key(h.job_id, h.born_for, h.slot),
    h.created_at, h.finished_at, h.error_code, h.error_msg, h.finished_at
from horai.instance_history h;

create view horai.retry_entry as
select id as instance_id, due as next_fire_time, attempt, error_code as reason
from horai.instance_live where state = 3;

create view horai.dlq_entry as
select d.instance_id, d.error_code, 'instance:' || d.instance_id as payload_ref, d.created_at, d.replay_status
from horai.dead_letter d;

-- The outbox as one stream: what event rows tell, and the successes that history rows tell.
create view horai.instance_event as
select e.tenant_id, e.job_id, e.instance_id, e.seq, e.at, e.kind, e.data
from horai.event e where e.instance_id is not null
union all
select h.tenant_id, h.job_id, h.id, h.events + 1, h.finished_at, 'INSTANCE_DONE',
    json_build_object('worker', h.node, 'attempt', h.attempt, 'idemKey', horai.idem_key(h.job_id, h.born_for, h.slot))
from horai.instance_history h where h.state = 2;
