-- Questions of the migration runner and of `horai migrate --plan` to the catalog.

-- name: relation_sizes
-- tenant: none
-- The size of a partitioned table is that of its partitions, and an index counts as its table. The number of rows is PostgreSQL's
-- estimate. A name without a table has no row.
select asked.name, sum(greatest(part.reltuples, stat.n_live_tup, 0))::bigint as rows, sum(pg_total_relation_size(part.oid))::bigint as bytes
from unnest($1::text[]) as asked(name)
join pg_class found on found.oid = to_regclass(asked.name)
left join pg_index on indexrelid = found.oid
cross join lateral (
    select coalesce(indrelid, found.oid) as id union select relid from pg_partition_tree(coalesce(indrelid, found.oid))
) tree
join pg_class part on part.oid = tree.id and part.relkind <> 'p'
left join pg_stat_user_tables stat on stat.relid = part.oid
group by asked.name;

-- name: not_null_checks
-- tenant: none
-- The checks of tables ($1) that one column is not null, by table and name.
select asked.name as held_by, conname as name, attname as column_name, convalidated as is_valid
from unnest($1::text[]) as asked(name)
join pg_constraint on conrelid = to_regclass(asked.name) and contype = 'c' and cardinality(conkey) = 1
join pg_attribute on attrelid = conrelid and attnum = conkey[1]
where pg_get_constraintdef(pg_constraint.oid) like format('CHECK ((%I IS NOT NULL))%%', attname);

-- name: blocking_sessions
-- tenant: none
-- The sessions with the oldest transactions that hold locks of tables ($1) or of their partitions.
select holder.pid, coalesce(holder.application_name, '') as application, holder.xact_start as since, min(held.relation::regclass::text) as relation
from pg_locks held join pg_stat_activity holder using (pid)
where held.locktype = 'relation' and held.granted and held.pid <> pg_backend_pid() and held.relation in (
    select coalesce(tree.relid, found.oid) from unnest($1::text[]) as asked(name)
    join pg_class found on found.oid = to_regclass(asked.name) left join pg_partition_tree(found.oid) tree on true
) and held.database = (select oid from pg_database where datname = current_database())
group by holder.pid, holder.application_name, holder.xact_start order by holder.xact_start limit 3;

-- name: versions_of_live_nodes
-- tenant: platform
-- The nodes that work now, and their versions.
select distinct name, version from horai.node
where stopped_at is null and fenced_at is null and lease_until > clock_timestamp() order by name, version;

-- name: partitions_of_table
-- tenant: none
-- The partitions of a table ($1), by schema and name; no row if the table has none.
select nspname as schema, relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
join pg_namespace on pg_namespace.oid = relnamespace
where inhparent = to_regclass($1) and relkind in ('r', 'p') order by relname;

-- name: is_partitioned
-- tenant: none
select relkind = 'p' from pg_class where oid = to_regclass($1);

-- name: is_valid_index
-- tenant: none
-- No row if there is no such index. A concurrent build that failed leaves an index that is not valid.
select indisvalid from pg_index where indexrelid = to_regclass($1);

-- name: has_attached_index
-- tenant: none
-- Returns whether a partition ($2) has an index that is part of an index of its parent ($1).
select exists (
    select from pg_inherits join pg_index on indexrelid = inhrelid where inhparent = to_regclass($1) and indrelid = to_regclass($2)
);

-- name: tables_to_isolate
-- tenant: none
select array_agg(relname::text order by relname) from pg_class
where relnamespace = to_regnamespace('horai') and relkind in ('r', 'p') and not relispartition;

-- name: has_unprotected_table
-- tenant: none
-- A crash between a migration and its policies leaves a table without them. A login that does not own the tables cannot change that.
select exists (
    select from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and not relispartition and not relrowsecurity
        and pg_has_role(relowner, 'usage')
);
