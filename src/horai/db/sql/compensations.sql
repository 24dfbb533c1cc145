-- Compensation of durable steps: before an instance dies or is cancelled, a claim of its own runs the compensations of its finished steps.

-- name: owed_compensations
-- tenant: by instance
-- Of claims whose instances are to die: those with finished steps that are not compensated, and the names of these steps.
-- `is_rewinding`: this claim began after the mark, and was to compensate them.
select live.id, owed.steps, exists (
    select from horai.step mark where mark.instance_id = live.id and mark.kind = 5 and mark.fence < live.fence
) as is_rewinding
from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) as claim(id, attempt, fence, node)
join horai.instance_live live on live.id = any (array[claim.id])
    and live.state = 1 and live.attempt = claim.attempt and live.fence = claim.fence and live.node = claim.node
cross join lateral (
    select array_agg(undo.name || '#' || undo.n order by undo.started_at desc, undo.name, undo.n) as steps
    from horai.step undo join horai.step done on done.instance_id = undo.instance_id and done.kind = 1 and done.name = undo.name
        and done.n = undo.n and done.progress = 1
    where undo.instance_id = live.id and undo.kind = 4 and undo.progress <> 1
) owed
where owed.steps is not null;

-- name: mark_deaths
-- tenant: by instance
-- Marks instances that are held and dying: their next claims run the compensations, and end with these errors and tags. The first mark of an
-- instance counts.
insert into horai.step (instance_id, tenant_id, kind, name, n, progress, fence, started_at, finished_at, error_type, error_msg, result)
select live.id, live.tenant_id, 5, 'rewind', 1, 1, live.fence, clock_timestamp(), clock_timestamp(), dying.code, dying.message, dying.tags
from unnest($1::bigint[], $2::text[], $3::text[], $4::json[]) as dying(id, code, message, tags)
join horai.instance_live live on live.id = any (array[dying.id])
on conflict do nothing;

-- name: hold_for_cancel
-- tenant: $1
-- Locks a live instance: its records are then complete for the next statement.
select state from horai.instance_live where tenant_id = $1 and id = $2 for update;

-- name: open_compensations
-- tenant: $1
-- The steps of an instance that are to be compensated, the last first. A step that still runs ($3: the instance is RUNNING) may finish, and counts.
select undo.name || '#' || undo.n as step from horai.step undo
where undo.tenant_id = $1 and undo.instance_id = $2 and undo.kind = 4 and undo.progress = 0 and ($3::boolean or exists (
    select from horai.step done where done.instance_id = undo.instance_id and done.kind = 1 and done.name = undo.name and done.n = undo.n
        and done.progress = 1))
order by undo.started_at desc, undo.name, undo.n;

-- name: mark_cancel
-- tenant: $1
-- Marks a held instance as cancelled with compensation, and makes it due. One that runs reads the mark with its next record. No row: it runs.
with mark as (
    insert into horai.step (instance_id, tenant_id, kind, name, n, progress, fence, started_at, finished_at)
    select id, tenant_id, 5, 'rewind', 1, 1, fence, clock_timestamp(), clock_timestamp()
    from horai.instance_live where tenant_id = $1 and id = $2
    on conflict do nothing
    returning instance_id
)
update horai.instance_live live set due = clock_timestamp(), execute_time = clock_timestamp(), suspended_until = null, updated_at = clock_timestamp()
from mark where live.id = mark.instance_id and live.tenant_id = $1 and live.state in (0, 3)
returning live.id, live.lane, live.due;
