-- Calls that are added once: `unique` and `debounce`.

-- name: add_calls
-- tenant: by job
-- Adds calls of the job $1. Returns one row for each, in the order of the arrays: the decision, the instance, and its lane and due time if it
-- is new or was moved.
select verdict, chosen, chosen_lane, chosen_due
from horai.add_calls($1, $2, $3, $4::json, $5, $6::smallint[], $7::bytea[], $8::timestamptz[], $9::json[], $10::interval[])
order by ordinal;

-- name: prune_unique_calls
-- tenant: platform
-- Checks a page of calls after ($1, $2, $3), and deletes those whose window is over and whose instance has ended. An instance that has ended
-- stays so; a call that got another instance meanwhile differs by its id and stays. Returns the last row of the page, and how many it has.
with page as materialized (
    select job_id, kind, digest, instance_id, held_until from horai.unique_call
    where (job_id, kind, digest) > ($1::bigint, $2::smallint, $3::bytea)
    order by job_id, kind, digest limit $4
), ended as materialized (
    select job_id, kind, digest, instance_id from page
    where held_until <= clock_timestamp() and not exists (select from horai.instance_live live where live.id = page.instance_id)
), locked as materialized (
    select own.job_id, own.kind, own.digest from ended join horai.unique_call own
        on own.job_id = any (array[ended.job_id]) and own.kind = ended.kind and own.digest = ended.digest and own.instance_id = ended.instance_id
    for update of own skip locked
), deleted as (
    delete from horai.unique_call own using locked
    where own.job_id = any (array[locked.job_id]) and own.kind = locked.kind and own.digest = locked.digest
)
select job_id, kind, digest, count(*) over () as rows from page order by job_id desc, kind desc, digest desc limit 1;
