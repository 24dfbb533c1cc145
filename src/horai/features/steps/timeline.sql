-- What a durable function has done and waits for, as its users see it.

-- name: steps_of_instance
-- tenant: by instance
-- A page of the records of an instance in the order of their beginnings, $3 of them after $2. Results above $4 bytes are left out. A call has its child,
-- with the child's job and state. The record of a sleep is not written when it ends: it is finished from its end on.
select page.kind, page.name, page.n, case when page.is_slept then 1 else page.progress end as state, page.tries, page.started_at,
    case when page.is_slept then page.until else page.finished_at end as finished_at, page.until, page.error_type, page.error_msg,
    case when octet_length(page.result::text) <= $4 then page.result end as result, octet_length(page.result::text) as result_size,
    page.child as child_id, coalesce(live.state, past.state) as child_state, job.name as child_job
from (
    select *, kind = 2 and progress = 0 and until <= statement_timestamp() as is_slept from horai.step
    where instance_id = $1 order by started_at, kind, n, name offset $2 limit $3
) page
left join horai.instance_live live on live.id = page.child
left join horai.instance_history past on past.id = page.child
left join horai.job on job.id = coalesce(live.job_id, past.job_id)
order by page.started_at, page.kind, page.n, page.name;

-- name: signals_of_instance
-- tenant: by instance
-- The last signals of an instance that no wait has taken, at most $2, in the order of their arrival.
select id, name, sent_at from (
    select id, name, sent_at from horai.step_signal where instance_id = $1 and consumed_at is null order by id desc limit $2
) last order by id;

-- name: pending_of_instance
-- tenant: by instance
-- Of a live instance: the names of its open waits, at most $2, and the number of steps that a cancel with compensation undoes. A step that still
-- runs may finish, and counts while the instance is RUNNING. No row: the instance has ended.
select array(
    select distinct open.name from horai.step open where open.instance_id = live.id and open.kind = 3 and open.progress = 0 order by open.name limit $2
) as waits, (
    select count(*) from horai.step undo where undo.instance_id = live.id and undo.kind = 4 and undo.progress = 0 and (live.state = 1 or exists (
        select from horai.step done where done.instance_id = undo.instance_id and done.kind = 1 and done.name = undo.name and done.n = undo.n
            and done.progress = 1))
) as open_compensations
from horai.instance_live live where live.id = any (array[$1::bigint]);
