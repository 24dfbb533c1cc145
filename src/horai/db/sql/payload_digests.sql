-- Digests of declared fields of the payloads of encrypted jobs: the index by which their instances are found.

-- name: index_payloads
-- tenant: by instance
select horai.index_payloads($1::bigint[], $2::json[], $3::bigint[]);

-- name: index_job_payload
-- tenant: by job
select horai.index_job_payload($1, $2::json);

-- name: instances_with_digest
-- tenant: $1
-- Returns up to $5 instances of the job $2 with one of the digests $4 at its path $3.
select own.instance_id from horai.payload_digest own
where own.tenant_id = $1 and own.job_id = $2 and own.path = $3 and own.digest = any ($4::bytea[]) and own.instance_id > 0
limit $5;

-- name: wipe_payload_digests
-- tenant: $1
delete from horai.payload_digest where tenant_id = $1;

-- name: prune_payload_digests
-- tenant: platform
-- Checks a page of digests after ($1, $2, $3), and deletes those whose instance is gone with its partition of the history, and those
-- whose data key was erased while a transaction copied them. Returns the last row of the page, and how many rows it has.
with page as materialized (
    select tenant_id, instance_id, job_id, path, digest from horai.payload_digest
    where (instance_id, job_id, path) > ($1::bigint, $2::bigint, $3::smallint)
    order by instance_id, job_id, path limit $4
), stray as materialized (
    select instance_id, job_id, path from page
    where instance_id > 0 and not exists (select from horai.instance_live live where live.id = page.instance_id)
        and not exists (select from horai.instance_history past where past.id = page.instance_id)
        or not exists (
            select from horai.data_key key
            where key.tenant_id = page.tenant_id and key.id = encode(substring(page.digest from 2 for 8), 'hex'))
), deleted as (
    delete from horai.payload_digest own using stray
    where own.instance_id = any (array[stray.instance_id]) and own.job_id = stray.job_id and own.path = stray.path
)
select instance_id, job_id, path, count(*) over () as rows from page order by instance_id desc, job_id desc, path desc limit 1;
