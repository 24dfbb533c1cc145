-- no-transaction
-- The trigger fills its timer wheel from this index alone, without a look at the rows, however many schedules there are.
create index concurrently if not exists schedule_coming on horai.schedule (fire_time, id) where fire_time is not null;

-- The index before it lacked the id. Both together would cost each fire a second entry.
drop index concurrently if exists horai.schedule_fire_time;
