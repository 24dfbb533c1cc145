-- name: next_slots
-- tenant: by job
-- Returns the next slot that the schedule of each job, or of its tick job, creates; only for jobs that are not paused.
select job.id, schedule.fire_time from horai.job
left join horai.job ticks on ticks.ticks_for = job.id and ticks.deleted_at is null
join horai.schedule on schedule.id = coalesce(job.schedule_id, ticks.schedule_id)
where job.id = any ($1::bigint[]) and job.status = 0 and job.deleted_at is null and schedule.fire_time is not null;

-- name: waiting_slot
-- tenant: by job
-- Returns the first slot of a job that has not started. A job that counts from the end of its runs has at most one.
select fire_time from horai.instance_live
where job_id = $1 and slot >= 0 and key is null and state = 0
order by fire_time limit 1;
