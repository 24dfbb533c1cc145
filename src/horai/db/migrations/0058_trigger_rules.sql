-- Trigger rules and retries of workflow nodes, skipped nodes and branches (docs/guides/workflows.md).

-- trigger_rule: 0 all_success, 1 all_done, 2 one_failed, 3 none_failed. cause: how a node ended without its instance saying so. 1: skipped,
-- its rule cannot be met; 2: skipped, a parent chose other nodes; 3: its function skipped it; 4: dead, it chose a node that is not after it.
-- chosen: the nodes after it that may run; null: all of them. retry: the retry policy of the node; null: that of its job.
alter table horai.workflow_node
    add column trigger_rule smallint not null default 0,
    add column cause smallint,
    add column chosen text[],
    add column retry json;

-- undecided: a decision on the run could not be written completely, because another transaction held a row. The next sweep decides again.
alter table horai.workflow_run add column undecided boolean not null default false;
