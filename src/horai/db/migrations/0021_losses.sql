-- How often an instance was lost with its node. Losses are not failures: they have their own limit (retry.maxLost), and an
-- instance that was lost twice runs alone in a process. Only live rows count them; a final instance is told by its attempts.
alter table horai.instance_live add column lost smallint not null default 0;

-- FAIL means failed or lost: the list of what is tried again has both. No claim changes either count.
drop index horai.instance_live_retried;
create index instance_live_retried on horai.instance_live (tenant_id, fire_time, id) where retry_count > 0 or lost > 0;

-- A running instance has no error: that of an earlier attempt is in its attempt row.
update horai.instance_live set error_code = null, error_msg = null where state = 1 and error_code is not null;
