-- Nodes of workflows that start a run of another workflow (docs/guides/workflows.md, decision 0073).

-- child: the settings of such a node; null: an ordinary node. Its instance is one of the job of that workflow: it starts the run, which has the id of
-- the instance, and ends with it. child_attempt: how many runs the node has started, this one included. child_result: the result of the
-- node, once the run has succeeded.
alter table horai.workflow_node
    add column child json,
    add column child_attempt smallint,
    add column child_result json;
