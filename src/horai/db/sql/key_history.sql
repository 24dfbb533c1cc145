-- The history of a key over all of its instances.

-- name: chain_of_key
-- tenant: by job
-- Returns a page in time order, after ($3, $4, $5): the creation of each instance, its events, its success, and the source
-- events that were ignored because of it. One snapshot: a row that moves to history is seen in exactly one of the two tables.
with chain as materialized (
    select id, created_at, born_for, supersedes, replay_of, events, 0::smallint as state, null::timestamptz as finished_at, attempt
    from horai.instance_live where job_id = $1 and key = $2
    union all
    select id, created_at, born_for, supersedes, replay_of, events, state, finished_at, attempt
    from horai.instance_history where job_id = $1 and key = $2
), told as (
    select created_at as at, id as instance_id, 0 as seq, 'INSTANCE_INSERTED' as kind,
        json_strip_nulls(json_build_object('executeTime', born_for, 'supersedes', supersedes::text, 'replayOf', replay_of::text)) as data
    from chain
    union all
    select event.at, event.instance_id, coalesce(event.seq, 2147483647), event.kind, event.data
    from chain join horai.event on event.instance_id = chain.id
    union all
    select finished_at, id, events + 1, 'INSTANCE_DONE', json_build_object('attempt', attempt) from chain where state = 2
    union all
    select ignored.at, ignored.instance_id, 2147483647, 'CHANGE_IGNORED', json_strip_nulls(json_build_object(
        'source', ignored.source, 'eventId', ignored.event_id, 'version', ignored.version, 'occurredAt', ignored.occurred_at))
    from chain join horai.source_event ignored on ignored.instance_id = chain.id and ignored.decision = 'IGNORED'
)
select at, instance_id, seq, kind, data from told where (at, instance_id, seq) > ($3, $4, $5) order by at, instance_id, seq limit $6;
