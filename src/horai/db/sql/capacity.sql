-- The storage of instances, for `horai capacity`.

-- name: instance_storage
-- tenant: platform
-- Bytes with indexes and large values, and PostgreSQL's estimate of rows: of waiting instances (is_live), and of finished ones with
-- their attempts, events and notes. Only the rows of the history count as finished instances.
select parent.is_live, sum(pg_total_relation_size(part.relid))::bigint as bytes,
    coalesce(sum(greatest(stored.reltuples, stat.n_live_tup, 0)) filter (where parent.counts), 0)::bigint as rows
from (values
    ('horai.instance_live', true, true), ('horai.instance_history', false, true),
    ('horai.attempt', false, false), ('horai.event', false, false), ('horai.note', false, false)
) as parent(name, is_live, counts)
cross join lateral (
    select parent.name::regclass::oid as relid union select relid from pg_partition_tree(parent.name::regclass)
) part
join pg_class stored on stored.oid = part.relid and stored.relkind <> 'p'
left join pg_stat_all_tables stat on stat.relid = part.relid
group by parent.is_live;
