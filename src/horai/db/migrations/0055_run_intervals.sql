-- Runs of workflows: the data interval that a run stands for, and the schema of the payload that it starts with.

-- The start of the data interval of the run; it ends at fire_time. Null: the workflow has no schedule.
alter table horai.workflow_run add column interval_start timestamptz;

-- The JSON Schema of the payload of a run. Null: any payload.
alter table horai.workflow add column params json;
