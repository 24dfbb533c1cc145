-- Nodes of workflows that ask for a condition again and again (docs/guides/workflows.md, decision 0074).

-- sensor: the settings of such a node; null: an ordinary node. Its instance is released when the condition is not met, and expires at the deadline. cause: 9 not
-- ready at the deadline, 10 skipped because of that.
alter table horai.workflow_node add column sensor json;
