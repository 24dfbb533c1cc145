-- Concurrency keys cost less where no instance waits for its key (docs/guides/calls.md, docs/decisions/0079), and so do ends of the items of maps.

-- As in 0061, in one statement.
create or replace function horai.lock_keys(job_ids bigint[], keys text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock(1215263336, part)
    from (select distinct hashtext(given.job_id || ':' || given.key) as part from unnest(job_ids, keys) as given(job_id, key) order by 1) parts;
end $$;

-- As in 0061. If every instance has a key of its own, and none of these keys has an instance that runs, all are admitted: a key has at least one
-- place. Otherwise the places are counted, with the parking lock held: may_keys_wait says "none" only if no claim is between its count and its
-- commit. The count that decides is a statement after the lock, so it sees the end of every claim of which such an answer was asked.
create or replace function horai.admit_keys(ids bigint[], lanes integer[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    job_ids bigint[];
    keys text[];
    locks bigint;
    refused bigint[];
    horizon timestamptz;
begin
    if not exists (select from horai.lane where lane.id = any (lanes) and lane.is_keyed) then
        return ids;
    end if;
    with asked as materialized (
        select live.job_id, live.concurrency_key as key, hashtext(live.job_id || ':' || live.concurrency_key) as part
        from horai.instance_live live where live.id = any (ids) and live.concurrency_key is not null
    ), locked as materialized (
        select pg_advisory_xact_lock(1215263336, part) from (select distinct asked.part from asked order by 1) parts
    )
    select array_agg(asked.job_id), array_agg(asked.key), (select count(*) from locked) into job_ids, keys, locks from asked;
    if keys is null then
        return ids;
    end if;
    horizon := clock_timestamp() + interval '1 minute';
    if locks = cardinality(keys) and not exists (
        select from unnest(job_ids, keys) as asked(job_id, key) cross join lateral (
            select from horai.instance_live held
            where held.job_id = asked.job_id and held.concurrency_key = asked.key and held.lane <> 0
                and held.due <= horizon and held.state = 1
            limit 1
        ) running
    ) then
        return ids;
    end if;
    perform pg_advisory_xact_lock_shared(1215263338, 0);
    refused := array(
        with asked as materialized (
            select live.id, live.job_id, live.concurrency_key as key,
                row_number() over (partition by live.job_id, live.concurrency_key order by live.id) as place
            from horai.instance_live live where live.id = any (ids) and live.concurrency_key is not null
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
            from (select distinct job_id, key from asked) named join limits on limits.id = named.job_id
        )
        select asked.id from asked join room on room.job_id = asked.job_id and room.key = asked.key where asked.place > room.places);
    if cardinality(refused) = 0 then
        return ids;
    end if;
    update horai.instance_live live set lane = 0, updated_at = clock_timestamp() where live.id = any (refused);
    return array(select given.id from unnest(ids) as given(id) where given.id <> all (refused));
end $$;

-- Whether an instance may wait in the parking lane for a place of its key. False: none does, and no claim parks one that has not seen what was
-- committed before this call. The parking lock is held for one look, and never waited for here: while a claim holds it, the answer is true.
create function horai.may_keys_wait() returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    if exists (select from horai.instance_live live where live.concurrency_key is not null and live.lane = 0)
        or not pg_try_advisory_xact_lock(1215263338, 0) then
        return true;
    end if;
    return exists (select from horai.instance_live live where live.concurrency_key is not null and live.lane = 0);
end $$;
revoke execute on function horai.may_keys_wait from public;

-- Every item is updated once, when it has ended, and all items of a page in one transaction. With 80 only a fifth of these updates was HOT.
alter table horai.workflow_item set (fillfactor = 45);
