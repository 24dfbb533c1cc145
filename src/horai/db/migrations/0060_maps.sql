-- Nodes of workflows that run their job once for each item of a list (docs/guides/workflows.md, decision 0062).

-- map: the settings of such a node; null: an ordinary node. It has no instance of its own: instance_id is only reserved. map_total: the items
-- of the list; null until it is known, which is when the node starts. map_made: the first so many items have an instance. map_ended and map_failed count
-- items that have ended, and those of them that did not succeed. map_result: the results of all items as a list. cause: 5 no list, 6 a list
-- that was too large to be stored, 7 too many items, 8 too many items failed.
alter table horai.workflow_node
    add column map json,
    add column map_total integer,
    add column map_made integer not null default 0,
    add column map_ended integer not null default 0,
    add column map_failed integer not null default 0,
    add column map_started_at timestamptz,
    add column map_finished_at timestamptz,
    add column map_result json;

-- The items of a map that have an instance. ended: the final state its instance was seen in. A dead one that is replayed is followed by its replay.
-- No index mentions `ended`, so that a recorded end is a HOT update.
create table horai.workflow_item (
    tenant_id integer not null,
    run_id bigint not null,
    name text collate "C" not null,
    generation integer not null,
    position integer not null,
    instance_id bigint not null unique,
    ended smallint check (ended in (2, 4, 5)),
    primary key (run_id, name, generation, position)
) with (fillfactor = 80);
revoke all on horai.workflow_item from public;

-- As before, and the instances of items of runs that go on.
create or replace function horai.needed_instances() returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
    select 'exists (select from horai.dead_letter letter where letter.instance_id = past.id and letter.replay_status = ''NEW'')
        or exists (select from horai.workflow_node node join horai.workflow_run run on run.id = node.run_id
            where node.instance_id = past.id and run.finished_at is null)
        or exists (select from horai.workflow_item item join horai.workflow_run run on run.id = item.run_id
            where item.instance_id = past.id and run.finished_at is null)
        or exists (select from horai.backfill_instance own where own.instance_id = past.id)
        or past.slot >= 0 and exists (select from horai.job where job.id = past.job_id and job.after_finish is not null and job.deleted_at is null)
            and not exists (select from horai.instance_history later where later.job_id = past.job_id and later.slot >= 0
                and (later.fire_time, later.id) > (past.fire_time, past.id))'
$$;
