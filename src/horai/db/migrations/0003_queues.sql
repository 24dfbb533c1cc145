-- Queues: what they allow, and the slots that their running calls sit in (docs/guides/queues.md).

-- How many turns a tenant has while others have one.
alter table horai.tenant add column weight integer not null default 1 check (weight between 1 and 1000);

-- Every queue that has a lane has a row; version 0 says that nobody has configured it. priority: of its jobs that state none.
-- (tokens, refilled_at) is the bucket of the rate: what was left in it, and when.
create table horai.queue (
    id integer generated always as identity primary key,
    tenant_id integer not null references horai.tenant,
    name text collate "C" not null,
    priority smallint check (priority between 0 and 3),
    max_concurrency integer check (max_concurrency between 1 and 10000),
    rate_count integer check (rate_count between 1 and 1000000),
    rate_per interval,
    paused boolean not null default false,
    tokens double precision not null default 1,
    refilled_at timestamptz not null default clock_timestamp(),
    version bigint not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    unique (tenant_id, name),
    constraint queue_rate_is_whole check ((rate_count is null) = (rate_per is null))
) with (fillfactor = 50);

-- A limited queue has as many slots that are not retired as its limit says. A claim takes a free one, in the statement that
-- makes its row RUNNING; the end of the call frees it, whatever has become of the row. A retired one is taken and goes
-- when it is freed: what ran when the limit was lowered. version: the queue's own; a claim that read an older one takes none.
-- taken_at: when it was last taken.
create table horai.queue_slot (
    queue_id integer not null references horai.queue,
    n integer not null,
    instance_id bigint,
    fence bigint,
    node bigint,
    taken_at timestamptz,
    retired boolean not null default false,
    version bigint not null,
    primary key (queue_id, n),
    constraint queue_slot_taken_by_a_claim
        check ((instance_id is null) = (fence is null) and (instance_id is null) = (node is null)),
    constraint queue_slot_retired_is_taken check (not retired or instance_id is not null)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index queue_slot_taken on horai.queue_slot (instance_id) where instance_id is not null;
create index queue_slot_free on horai.queue_slot (queue_id, n) where instance_id is null;
create index queue_slot_retired on horai.queue_slot (queue_id) where retired;

-- A lane belongs to its queue. inherits: it holds what states no priority of its own, and follows the queue's; no row has
-- to move when that changes. Until now every job had a priority written down: `normal` counts as none stated.
alter table horai.lane add column queue_id integer references horai.queue, add column inherits boolean not null default false;
insert into horai.queue (tenant_id, name) select distinct tenant_id, queue from horai.lane;
update horai.lane set inherits = lane.priority = 2, queue_id = queue.id
from horai.queue where queue.tenant_id = lane.tenant_id and queue.name = lane.queue;
alter table horai.lane alter column queue_id set not null;
alter table horai.lane drop constraint lane_tenant_id_queue_priority_handler_key;
create unique index lane_stated on horai.lane (tenant_id, queue, handler, priority) where not inherits;
create unique index lane_inherits on horai.lane (tenant_id, queue, handler) where inherits;
create index lane_queue on horai.lane (queue_id);
update horai.job set definition = (definition::jsonb - 'priority')::json where definition ->> 'priority' = 'normal';

-- A lane finds its queue, or makes it. The lock lets a change of the queue (FOR UPDATE) see every lane, and every lane the
-- queue's present priority.
create function horai.join_queue() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    insert into horai.queue (tenant_id, name) values (new.tenant_id, new.queue) on conflict do nothing;
    select queue.id, case when new.inherits then coalesce(queue.priority, 2) else new.priority end
    into strict new.queue_id, new.priority
    from horai.queue where queue.tenant_id = new.tenant_id and queue.name = new.queue for key share;
    return new;
end $$;
create trigger lane_joins_queue before insert on horai.lane for each row execute function horai.join_queue();

-- The door between claims without slots and a change of the queue. A claim holds it open (shared) until it commits; whoever
-- changes the queue shuts it and so waits for the claims under way, then sees all they have made RUNNING. Advisory, not a
-- lock on the row: many nodes claim from one queue at once, and each such lock would make a multixact.
-- Volatile and in two steps: the second looks with a snapshot that was taken behind the door.
create index queue_closed on horai.queue (id) where max_concurrency is not null or paused;
create function horai.open_lanes(lanes integer[]) returns integer[]
language plpgsql volatile set search_path = pg_catalog as $$
declare
    entered integer[];
begin
    entered := array(
        select lane.id from (select distinct unnest(lanes) as id) asked join horai.lane on lane.id = asked.id
        where pg_try_advisory_xact_lock_shared(1215263329, lane.queue_id));
    if not exists (select from horai.queue where max_concurrency is not null or paused) then
        return entered;
    end if;
    return array(
        select inside.id from unnest(entered) as inside(id) where not exists (
            select from horai.lane join horai.queue on queue.id = lane.queue_id
            where lane.id = inside.id and (queue.max_concurrency is not null or queue.paused)));
end $$;

create function horai.shut_queue(queue integer) returns void
language sql volatile set search_path = pg_catalog as $$
    select pg_advisory_xact_lock(1215263329, queue)
$$;

-- A job's priority is its lane's: its own, or that of its queue.
create function horai.priority_of(lane_id integer) returns smallint
language sql stable parallel safe set search_path = pg_catalog as $$
    select lane.priority from horai.lane where lane.id = lane_id
$$;

create or replace view horai.job_definition as
select j.id as job_id, t.name as tenant_id, j.name, j.definition ->> 'cron' as cron,
    coalesce(j.definition ->> 'timezone', 'UTC') as timezone,
    case j.status when 0 then 'ACTIVE' else 'PAUSED' end as status,
    (array['core', 'high', 'normal', 'low'])[horai.priority_of(j.lane_id) + 1] as priority,
    j.definition -> 'retry' as retry_policy, j.created_at, j.updated_at
from horai.job j join horai.tenant t on t.id = j.tenant_id
where j.deleted_at is null;
