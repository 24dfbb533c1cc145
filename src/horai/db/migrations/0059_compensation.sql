-- Compensation of durable steps (docs/guides/durable-steps.md): two more kinds of records.

-- kind: 4 compensation of the step with this name and n: open from before the step runs until the compensation has run. 5 the mark of an
-- instance whose compensations run, at most one. Its fence is that of the last claim before them; error_type and error_msg are those of the
-- death, null for a cancel. Not validated: all rows satisfied the narrower check.
alter table horai.step drop constraint step_kind_check;
alter table horai.step add constraint step_kind check (kind between 1 and 5) not valid;
