-- Child calls: the statements of one transaction that holds the callers, and those of the stage that wakes them.

-- name: rewound_now
-- tenant: platform
-- Of held instances, those that were cancelled with compensation during their claims.
select mark.instance_id as id, mark.fence from horai.step mark join horai.instance_live live on live.id = mark.instance_id and live.fence = mark.fence
where mark.instance_id = any ($1::bigint[]) and mark.kind = 5;

-- name: calls_of
-- tenant: platform
-- The recorded calls of held instances, and how their children ended. `replay`: the latest replay of a child that died. A child that is neither
-- live nor in history has left the history.
select call.instance_id, call.name, call.n, call.progress, call.child, call.result, call.error_type, call.error_msg,
    live.id is not null as is_live, past.state, past.reason, past.result as output, past.error_code, past.error_msg as death, replay.id as replay
from unnest($1::bigint[], $2::text[], $3::integer[]) as asked(id, name, n)
join horai.step call on call.instance_id = asked.id and call.kind = 6 and call.name = asked.name and call.n = asked.n
left join horai.instance_live live on live.id = call.child
left join horai.instance_history past on past.id = call.child
left join lateral (
    select max(again.id) as id from (
        select id from horai.instance_live where replay_of = call.child
        union all
        select id from horai.instance_history where replay_of = call.child
    ) again
) replay on past.state = 4;

-- name: open_calls
-- tenant: platform
-- Records calls of held instances with the children that this transaction has created, and notifies the nodes that may run them.
with called as (
    select * from unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[]) as called(id, name, n, child)
), recorded as (
    insert into horai.step (instance_id, tenant_id, kind, name, n, progress, fence, started_at, child)
    select called.id, live.tenant_id, 6, called.name, called.n, 0, live.fence, clock_timestamp(), called.child
    from called join horai.instance_live live on live.id = any (array[called.id])
), related as (
    insert into horai.child_call (child_id, parent_id, tenant_id, name, n)
    select called.child, called.id, live.tenant_id, called.name, called.n
    from called join horai.instance_live live on live.id = any (array[called.id])
), marked as (
    insert into horai.called_job (job_id, tenant_id)
    select distinct child.job_id, child.tenant_id from called join horai.instance_live child on child.id = any (array[called.child])
    on conflict do nothing
)
select horai.tell_lane(child.lane, (child.id % 32)::integer, child.due)
from called join horai.instance_live child on child.id = any (array[called.child]) where child.lane <> 0;

-- name: take_calls
-- tenant: platform
-- Finishes open calls of held instances with the results of their children ($5), or leaves them open ($6 false). Their ends count as told.
with ended as (
    select * from unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[], $5::json[], $6::boolean[]) as ended(id, name, n, child, result, is_taken)
), told as (
    update horai.child_call call set is_open = false from ended where call.child_id = ended.child and call.is_open
)
update horai.step call set progress = 1, finished_at = clock_timestamp(), result = ended.result
from ended where ended.is_taken and call.instance_id = ended.id and call.kind = 6 and call.name = ended.name and call.n = ended.n
    and call.child = ended.child and call.progress = 0;

-- name: replace_children
-- tenant: platform
-- Gives open calls of held instances the replays of their dead children.
with replayed as (
    select * from unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[]) as replayed(id, name, n, child, replay)
), followed as (
    update horai.step call set child = replayed.replay from replayed
    where call.instance_id = replayed.id and call.kind = 6 and call.name = replayed.name and call.n = replayed.n
        and call.child = replayed.child and call.progress = 0
    returning call.instance_id, call.tenant_id, call.name, call.n, call.child
)
insert into horai.child_call (child_id, parent_id, tenant_id, name, n)
select child, instance_id, tenant_id, name, n from followed on conflict do nothing;

-- name: has_open_calls
-- tenant: platform
select exists (select from horai.child_call where is_open);

-- name: open_calls_among
-- tenant: platform
-- The children of open calls that these instances are, or have made.
select child_id from horai.child_call where is_open and child_id = any ($1::bigint[])
union
select child_id from horai.child_call where is_open and parent_id = any ($1::bigint[]);

-- name: calls_to_decide
-- tenant: platform
-- A page of open calls whose child has ended, or whose caller has ended or started over.
select child_id from horai.child_call call
where is_open and child_id > $1 and (
    not exists (select from horai.instance_live child where child.id = call.child_id)
    or not exists (select from horai.instance_live live where live.id = call.parent_id)
    or not exists (select from horai.step asked where asked.instance_id = call.parent_id and asked.kind = 6 and asked.name = call.name
        and asked.n = call.n and asked.progress = 0 and asked.child = call.child_id))
order by child_id limit $2;

-- name: wake_callers
-- tenant: platform
-- Makes suspended callers of ended children due, once for each child. A caller that runs is left for later: it may be about to suspend itself.
-- Skips rows that another transaction has locked.
with ended as materialized (
    select call.child_id, call.parent_id from horai.child_call call
    where call.child_id = any ($1::bigint[]) and call.is_open
        and not exists (select from horai.instance_live child where child.id = call.child_id)
), held as materialized (
    select live.id from horai.instance_live live
    where live.id = any (array(select distinct parent_id from ended)) and live.state in (0, 3)
    order by live.id for no key update skip locked
), told as (
    update horai.child_call call set is_open = false from ended
    where call.child_id = ended.child_id and ended.parent_id = any (array(select id from held))
)
update horai.instance_live live set due = clock_timestamp(), execute_time = clock_timestamp(), updated_at = clock_timestamp()
from held where live.id = any (array[held.id]) and live.state = 0 and live.due > clock_timestamp() and live.suspended_until is not null
returning live.id, live.lane, live.due;

-- name: orphans_among
-- tenant: platform
-- The children of open calls whose callers have ended or started over.
select child_id from horai.child_call call
where child_id = any ($1::bigint[]) and is_open and (
    not exists (select from horai.instance_live live where live.id = call.parent_id)
    or not exists (select from horai.step asked where asked.instance_id = call.parent_id and asked.kind = 6 and asked.name = call.name
        and asked.n = call.n and asked.progress = 0 and asked.child = call.child_id));

-- name: close_calls
-- tenant: platform
update horai.child_call call set is_open = false
where call.child_id = any ($1::bigint[]) and not exists (select from horai.instance_live child where child.id = call.child_id);

-- name: forget_calls
-- tenant: platform
-- Forgets calls whose child and caller are neither live nor in history: reads $2 of them with ids above $1. Returns the last; null if there is none.
with page as materialized (
    select child_id, parent_id from horai.child_call where child_id > $1 order by child_id limit $2
), gone as materialized (
    select child_id from page where not exists (select from horai.instance_live live where live.id in (page.child_id, page.parent_id))
        and not exists (select from horai.instance_history past where past.id in (page.child_id, page.parent_id))
), forgotten as (
    delete from horai.child_call where child_id = any (array(select child_id from gone))
)
select max(child_id) from page;
