-- Nodes of runs that are maps, and their items. A transaction that changes them has locked the row of the run.

-- name: payload_of_run
-- tenant: by workflow
select payload from horai.workflow_run where id = $1;

-- name: result_to_map
-- tenant: by instance
-- The result of the node that a map goes over. $2: it cannot have ended before this time.
select result from horai.instance_history where id = $1 and finished_at >= $2 and state = 2;

-- name: make_items
-- tenant: by job
-- moves: -> INIT
-- Inserts the items from position $5 on of the map $2, $3 of the run $1, with fire time $4: an instance of the job $6 with each payload $7. They are
-- due now, in the lane of the job; the lock on the job orders this against a pause.
with job as materialized (
    select id, tenant_id, case when status = 0 then lane_id else 0 end as lane, payload, greatest($4, clock_timestamp()) as at
    from horai.job where id = $6 for key share
), fresh as materialized (
    select nextval('horai.instance_id') as id, item.payload, $5 + item.n - 1 as position
    from unnest($7::json[]) with ordinality as item(payload, n) order by item.n
), made as (
    insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
    select fresh.id, job.id, job.tenant_id, job.lane, fresh.id % $8, $4, job.at, $4, job.at, -fresh.id, coalesce(fresh.payload, job.payload)
    from fresh cross join job
    returning id, lane, due
), noted as (
    insert into horai.workflow_item (tenant_id, run_id, name, generation, position, instance_id)
    select job.tenant_id, $1, $2, $3, fresh.position, fresh.id from fresh cross join job
)
select id, lane, due from made;

-- name: note_item_ends
-- tenant: by workflow
-- Records the ends of the items of the map $1..$3. One snapshot: a row that moves is in one of the two tables. An instance in neither
-- was deleted by hand, and counts as dead. $4: none of them can have ended before this time.
with noted as (
    update horai.workflow_item item set ended = coalesce((
        select past.state from horai.instance_history past where past.id = item.instance_id and past.finished_at >= $4 limit 1), 4)
    where item.run_id = $1 and item.name = $2 and item.generation = $3 and item.ended is null
        and (select true from horai.instance_live live where live.id = item.instance_id) is null
    returning item.ended
)
select count(*)::integer as ended, (count(*) filter (where ended <> 2))::integer as failed from noted;

-- name: follow_item_replays
-- tenant: by workflow
-- Points dead items of the map $1..$3 to their replays. Returns how many.
with found as materialized (
    select item.instance_id as dead, replay.id from horai.workflow_item item
    cross join lateral (
        select max(one.id) as id from (
            select live.id from horai.instance_live live where live.replay_of = item.instance_id
            union all
            select past.id from horai.instance_history past where past.replay_of = item.instance_id
        ) one
    ) replay
    where item.run_id = $1 and item.name = $2 and item.generation = $3 and item.ended = 4 and replay.id is not null
), followed as (
    update horai.workflow_item item set instance_id = found.id, ended = null from found
    where item.instance_id = any (array[found.dead])
    returning item.position
)
select count(*)::integer from followed;

-- name: open_items
-- tenant: by workflow
select instance_id from horai.workflow_item
where run_id = $1 and name = $2 and generation = $3 and ended is null order by instance_id;

-- name: set_map
-- tenant: by workflow
-- Writes the progress of the map $1..$3. $8: a fault that makes the node dead at the next decision; $9: the result, once there is one; $10: it goes on
-- after it was dead.
update horai.workflow_node node
set map_total = $4, map_made = $5, map_ended = $6, map_failed = $7, cause = case when $10 then null else coalesce($8::smallint, cause) end,
    map_result = coalesce($9::json, map_result), ended = case when not $10 then ended end,
    map_started_at = coalesce(map_started_at, clock_timestamp()), map_finished_at = case when $11 then clock_timestamp() end
where node.run_id = $1 and node.name = $2 and node.generation = $3 and node.is_current;

-- name: map_results
-- tenant: by workflow
-- The results of maps, by the ids that are reserved for their nodes.
select instance_id, map_result as result from horai.workflow_node where instance_id = any ($1::bigint[]) and map_result is not null;

-- name: item_results
-- tenant: by workflow
-- The results of the items of the map $1..$3 at positions from $5 to before $6, in order; null unless an item succeeded.
select (select past.result from horai.instance_history past where past.id = item.instance_id and past.finished_at >= $4 limit 1) as result
from horai.workflow_item item
where item.run_id = $1 and item.name = $2 and item.generation = $3 and item.position >= $5 and item.position < $6
order by item.position;

-- name: items_page
-- tenant: by workflow
-- Up to $6 items of the map $1..$3 after position $5, with the data of their instances; with $7, only those that failed.
select item.position, item.instance_id, coalesce(live.state, past.state, item.ended) as state, coalesce(live.attempt, past.attempt) as attempt,
    coalesce(live.error_code, past.error_code) as error_code, coalesce(live.error_msg, past.error_msg) as error_msg,
    coalesce(live.claimed_at, past.claimed_at) as claimed_at, past.finished_at, past.result
from horai.workflow_item item
left join lateral (select * from horai.instance_live one where one.id = item.instance_id limit 1) live on true
left join lateral (
    select * from horai.instance_history one where one.id = item.instance_id and one.finished_at >= $4 limit 1
) past on true
where item.run_id = $1 and item.name = $2 and item.generation = $3 and item.position > $5 and (not $7 or item.ended in (4, 5))
order by item.position limit $6;

-- name: dead_items_of
-- tenant: by workflow
-- The dead items of the current maps of the run $1 with these names.
select item.instance_id from horai.workflow_item item
join horai.workflow_node node on node.run_id = item.run_id and node.name = item.name and node.generation = item.generation and node.is_current
where item.run_id = $1 and item.name = any ($2::text[]) and item.ended = 4 order by item.instance_id;
