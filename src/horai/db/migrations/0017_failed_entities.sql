-- Entities whose last run failed are counted whenever somebody looks at a refresh job: few, or all of them, but never by a walk
-- over those that succeeded.
create index entity_failed on horai.entity (job_id, finish_time) where status = 3;
