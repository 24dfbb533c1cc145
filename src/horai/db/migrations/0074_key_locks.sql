-- Claims of many concurrency keys lock less and read less (docs/guides/calls.md, docs/decisions/0079).

-- The locks of keys, as in 0061, but a key shares one of 64 with other keys: a claim of 1,000 rows takes 64 locks and not 1,000.
create or replace function horai.lock_keys(job_ids bigint[], keys text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock(1215263336, part)
    from (
        select distinct hashtext(given.job_id || ':' || given.key) & 63 as part from unnest(job_ids, keys) as given(job_id, key) order by 1
    ) parts;
end $$;

-- As in 0073, of rows that the caller has read and locked: their ids, jobs and keys, null for a row without a key.
create function horai.admit_keys(ids bigint[], job_ids bigint[], keys text[], lanes integer[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    rows bigint;
    different bigint;
    locks bigint;
    refused bigint[];
    horizon timestamptz;
begin
    if not exists (select from horai.lane where lane.id = any (lanes) and lane.is_keyed) then
        return ids;
    end if;
    with asked as materialized (
        select hashtext(given.job_id || ':' || given.key) as key_hash from unnest(job_ids, keys) as given(job_id, key)
        where given.key is not null
    ), locked as materialized (
        select pg_advisory_xact_lock(1215263336, part) from (select distinct asked.key_hash & 63 as part from asked order by 1) parts
    )
    select count(*), count(distinct asked.key_hash), (select count(*) from locked) into rows, different, locks from asked;
    if rows = 0 then
        return ids;
    end if;
    horizon := clock_timestamp() + interval '1 minute';
    if different = rows and not exists (
        select from unnest(job_ids, keys) as asked(job_id, key) cross join lateral (
            select from horai.instance_live held
            where held.job_id = asked.job_id and held.concurrency_key = asked.key and held.lane <> 0
                and held.due <= horizon and held.state = 1
            limit 1
        ) running
        where asked.key is not null
    ) then
        return ids;
    end if;
    perform pg_advisory_xact_lock_shared(1215263338, 0);
    refused := array(
        with asked as materialized (
            select given.id, given.job_id, given.key, row_number() over (partition by given.job_id, given.key order by given.id) as place
            from unnest(ids, job_ids, keys) as given(id, job_id, key) where given.key is not null
        ), limits as materialized (
            select job.id, horai.places_of_key(job.definition) as places from horai.job where job.id = any (job_ids)
        ), room as materialized (
            select named.job_id, named.key, limits.places - (
                select count(*) from (
                    select from horai.instance_live held
                    where held.job_id = named.job_id and held.concurrency_key = named.key and held.lane <> 0
                        and held.due <= horizon and held.state = 1
                    limit limits.places
                ) running) as places
            from (select distinct asked.job_id, asked.key from asked) named join limits on limits.id = named.job_id
        )
        select asked.id from asked join room on room.job_id = asked.job_id and room.key = asked.key where asked.place > room.places);
    if cardinality(refused) = 0 then
        return ids;
    end if;
    update horai.instance_live live set lane = 0, updated_at = clock_timestamp() where live.id = any (refused);
    return array(select given.id from unnest(ids) as given(id) where given.id <> all (refused));
end $$;
revoke execute on function horai.admit_keys(bigint[], bigint[], text[], integer[]) from public;

-- The claims of nodes of the last version, which do not pass jobs and keys.
create or replace function horai.admit_keys(ids bigint[], lanes integer[]) returns bigint[]
language sql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
    select horai.admit_keys(array_agg(live.id), array_agg(live.job_id), array_agg(live.concurrency_key), lanes)
    from horai.instance_live live where live.id = any (ids)
$$;

-- Claims and releases under way hold the locks of before: new ones wait until those have committed.
lock table horai.instance_live in share row exclusive mode;
