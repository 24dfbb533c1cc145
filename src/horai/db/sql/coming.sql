-- name: waiting_slot
-- The slot of a job that has not begun yet; one that counts from the end of its runs has at most one.
select fire_time from horai.instance_live
where job_id = $1 and slot >= 0 and key is null and state = 0
order by fire_time limit 1;
