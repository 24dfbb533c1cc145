-- The quota `concurrency`: how many instances of a tenant run at once (docs/guides/tenants.md, docs/decisions/0040-quotas-cost-only-tenants-that-have-them.md).

alter table horai.tenant_quota add column concurrency integer check (concurrency between 1 and 10000);

-- is_pool: the row is no queue of jobs, but holds the permits of its tenant: max_concurrency is the quota, null without one. Its name
-- is one that no queue can have. pool_id: that row, for each queue of a tenant with the quota. An instance of such a queue runs with a
-- permit of the pool, and with one of the queue as well if the queue has a limit.
alter table horai.queue
    add column is_pool boolean not null default false,
    add column pool_id integer references horai.queue on delete set null,
    add constraint queue_pool_is_in_no_pool check (not is_pool or pool_id is null);
create unique index queue_pool on horai.queue (tenant_id) where is_pool;
create index queue_in_pool on horai.queue (pool_id) where pool_id is not null;

-- A queue that appears while its tenant is paused or has the quota is held and in the pool as well; the lock orders it against both.
create or replace function horai.hold_new_queue() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    perform horai.share_tenant(new.tenant_id);
    new.held := (select paused_at is not null from horai.tenant where id = new.tenant_id);
    if not new.is_pool then
        new.pool_id := (select id from horai.queue where tenant_id = new.tenant_id and is_pool and max_concurrency is not null);
    end if;
    return new;
end $$;

drop index horai.queue_closed;
create index queue_closed on horai.queue (id) where max_concurrency is not null or paused or held or pool_id is not null;
create or replace function horai.open_lanes(lanes integer[]) returns integer[]
language plpgsql volatile set search_path = pg_catalog as $$
declare
    entered integer[];
begin
    entered := array(
        select lane.id from (select distinct unnest(lanes) as id) asked join horai.lane on lane.id = asked.id
        where pg_try_advisory_xact_lock_shared(1215263329, lane.queue_id));
    if not exists (select from horai.queue where max_concurrency is not null or paused or held or pool_id is not null) then
        return entered;
    end if;
    return array(
        select inside.id from unnest(entered) as inside(id) where not exists (
            select from horai.lane join horai.queue on queue.id = lane.queue_id
            where lane.id = inside.id and (queue.max_concurrency is not null or queue.paused or queue.held or queue.pool_id is not null)));
end $$;

-- Enter a queue whose instances need permits; no row if it is paused, needs none, or is being changed. A claim is in the queue until it
-- commits, and a change of the queue or of its pool waits for that (shut_queue). Volatile and in two steps, as open_lanes: a claim that
-- read the tables before a change must not miss the permits that the change asks for. beyond: permits that are taken above the limit.
create function horai.enter_queue(queue integer) returns table (
    version bigint, is_limited boolean, beyond bigint, pool_id integer, pool_version bigint, pool_beyond bigint
)
language plpgsql volatile rows 1 set search_path = pg_catalog as $$
#variable_conflict use_column
begin
    if not pg_try_advisory_xact_lock_shared(1215263329, enter_queue.queue) then
        return;
    end if;
    return query
        select own.version, own.max_concurrency is not null,
            (select count(*) from horai.queue_slot slot where slot.queue_id = own.id and slot.retired), own.pool_id, pool.version,
            case when own.pool_id is not null then
                (select count(*) from horai.queue_slot slot where slot.queue_id = own.pool_id and slot.retired) end
        from horai.queue own left join horai.queue pool on pool.id = own.pool_id
        where own.id = enter_queue.queue and (own.max_concurrency is not null or own.pool_id is not null) and not own.paused and not own.held;
end $$;
revoke execute on function horai.enter_queue from public;
