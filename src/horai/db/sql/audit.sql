-- The audit log: rows are added in the transaction of the write that they record, and dropped by month.

-- name: insert_audit
-- tenant: $1
-- The notification reaches the sealer after the commit.
insert into horai.audit (
    tenant_id, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name, before, after, counts
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::json, $13::json, $14::json)
returning pg_notify('horai_wake', 'a');

-- name: continue_audit
-- tenant: platform
select horai.continue_audit() as skipped;

-- name: old_audit_months
-- tenant: platform
-- The months with a partition that ended at least $1 ago, oldest first.
select to_date(right(part.relname, 6), 'YYYYMM') as month
from pg_inherits join pg_class part on part.oid = inhrelid
where inhparent = 'horai.audit'::regclass and part.relname ~ '^audit_[0-9]{6}$'
    and (to_date(right(part.relname, 6), 'YYYYMM') + interval '1 month') at time zone 'UTC' <= clock_timestamp() - $1::interval
order by 1;

-- name: drop_audit_month
-- tenant: platform
-- Returns the number of dropped rows; null if the month has rows that are not sealed.
select horai.drop_audit_month($1) as rows;
