-- Decisions on keys read only the days of history that are not folded yet. A bound that a subquery finds keeps PostgreSQL from leaving
-- the other partitions out when it starts a plan: it opens each of them and its index. A bound in a variable does not. A fold between the
-- two statements only makes the second one read a day in both places.

-- Returns the past of keys from history and, before that, from the table into which old days are folded. Run it after the statement that
-- saw no live row: a row that moves from live to history may be missed by both halves of a statement that reads both.
-- Ids do not show which instance is the last: each connection takes them from its own sequence cache.
create function horai.past_of_keys(job bigint, keys text[])
returns table (key text, succeeded boolean, version bigint, fence bigint, dead bigint[], last bigint)
language plpgsql as $$
declare
    folded timestamptz;
begin
    select fold.folded_before into folded from horai.history_fold fold where fold.id = 1;
    return query
    select past.key, bool_or(past.succeeded), max(past.version), max(past.fence),
        coalesce(array_agg(past.dead_id) filter (where past.dead_id is not null), '{}'), (array_agg(past.id order by past.finished_at desc))[1]
    from (
        select ended.key, ended.id, ended.state = 2 as succeeded, ended.version, ended.fence, case when ended.state = 4 then ended.id end as dead_id,
            ended.finished_at
        from horai.instance_history ended where ended.job_id = job and ended.key = any (keys) and ended.finished_at >= folded
        union all
        select known.key, known.last_id, known.succeeded, known.version, known.fence, known.dead_id, known.finished_at
        from horai.key_past known where known.job_id = job and known.key = any (keys)
    ) past group by past.key;
end $$;
revoke execute on function horai.past_of_keys from public;

create or replace function horai.put_fresh(wish horai.wish) returns horai.put_answer
language plpgsql as $$
declare
    made horai.instance_live := horai.insert_wish(wish);
    past record;
    folded timestamptz;
begin
    if made.id is null then
        return null;
    end if;
    select folded_before into folded from horai.history_fold where id = 1;
    select bool_or(succeeded) as succeeded, max(version) as version, max(fence) as fence, array_agg(dead_id) filter (where dead_id is not null) as dead,
        (array_agg(row('IGNORED', id, horai.state_name(state), execute_time)::horai.put_answer order by finished_at desc))[1] as last,
        (array_agg(is_repeat order by finished_at desc))[1] as is_repeat
    into past from (
        select id, state, version, fence, execute_time, finished_at, state = 2 as succeeded, case when state = 4 then id end as dead_id,
            horai.repeats(wish, version, fire_time, payload) as is_repeat
        from horai.instance_history
        where job_id = wish.job_id and key = wish.key and finished_at >= folded
        union all
        select last_id, state, version, fence, execute_time, finished_at, succeeded, dead_id,
            wish.version = version and wish.at = fire_time and (wish.payload is null or horai.payload_hash(wish.payload) = payload_hash)
        from horai.key_past where job_id = wish.job_id and key = wish.key
    ) record;
    if wish.version < past.version or ((past.succeeded or past.is_repeat) and not wish.again) then
        delete from horai.instance_live where id = made.id and state = 0 and attempt = 0;
        return past.last;
    end if;
    if past.last is not null then
        update horai.instance_live live set version = coalesce(live.version, past.version), fence = greatest(live.fence, past.fence)
        where live.id = made.id;
    end if;
    if past.dead is not null then
        update horai.dead_letter set replay_status = 'SUPERSEDED' where instance_id = any (past.dead) and replay_status = 'NEW';
    end if;
    perform horai.tell_lane(made.lane, made.shard, made.due);
    return row('INSERTED', made.id, 'INIT', made.execute_time)::horai.put_answer;
end $$;
