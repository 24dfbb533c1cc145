-- The audit log: lists and exports for users, and the statements of the sealer and of verification. Transaction ids are passed
-- as text: they are 64-bit and have no arithmetic in PostgreSQL.

-- name: list_audit
-- tenant: platform
-- A page of the rows of the tenant $1 and, with $11, of the platform, newest first, that starts before ($8, $9). $2 actor, $3 verb, $4 object, $5 kind of object, $6 from,
-- $7 until; null means no condition. An actor and an object are given by id or by name.
select id, tenant_id, at, xid, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name,
    before::text as before, after::text as after, counts::text as counts,
    (select n from horai.audit_seal seal where seal.to_xid >= audit.xid order by seal.to_xid limit 1) as seal
from horai.audit
where (tenant_id = $1 or $11 and tenant_id is null) and ($2::text is null or actor_id = $2 or actor_name = $2) and ($3::text is null or verb = $3)
    and ($4::text is null or object_id = $4 or object_name = $4) and ($5::text is null or object_kind = $5)
    and ($6::timestamptz is null or at >= $6) and ($7::timestamptz is null or at < $7) and (at, id) < ($8, $9)
order by at desc, id desc limit $10;

-- name: export_audit
-- tenant: platform
-- The same, oldest first, starting after ($8, $9).
select id, tenant_id, at, xid, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name,
    before::text as before, after::text as after, counts::text as counts,
    (select n from horai.audit_seal seal where seal.to_xid >= audit.xid order by seal.to_xid limit 1) as seal
from horai.audit
where (tenant_id = $1 or $11 and tenant_id is null) and ($2::text is null or actor_id = $2 or actor_name = $2) and ($3::text is null or verb = $3)
    and ($4::text is null or object_id = $4 or object_name = $4) and ($5::text is null or object_kind = $5)
    and ($6::timestamptz is null or at >= $6) and ($7::timestamptz is null or at < $7) and (at, id) > ($8, $9)
order by at, id limit $10;

-- name: lock_sealing
-- tenant: platform
-- One process seals at a time. The lock ends with the transaction.
select pg_try_advisory_xact_lock(1215263330, 0) as is_locked;

-- name: last_seal
-- tenant: platform
select n, from_xid::text::bigint as from_xid, to_xid::text::bigint as to_xid, rows, entries, previous, hash, sealed_at, key_id, signature
from horai.audit_seal order by n desc limit 1;

-- name: sealing_horizon
-- tenant: platform
-- The oldest open transaction, and whether there are committed rows after the transaction $1.
select horai.audit_horizon() as horizon, clock_timestamp() as now,
    exists (select from horai.audit where xid > $1::text::xid8) as has_rows;

-- name: rows_to_seal
-- tenant: platform
-- The rows after the transaction $1 and below $2, the oldest transaction that was open in an earlier snapshot: all of theirs have
-- ended, so no row can follow. Rows of one transaction are returned together, so there may be more than $3.
select id, tenant_id, at, xid, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name,
    before::text as before, after::text as after, counts::text as counts, null::bigint as seal
from horai.audit where xid > $1::text::xid8 and xid < $2::text::xid8 order by xid fetch first $3 rows with ties;

-- name: insert_seal
-- tenant: platform
insert into horai.audit_seal (n, from_xid, to_xid, rows, entries, previous, hash, sealed_at, key_id, signature)
values ($1, $2::text::xid8, $3::text::xid8, $4, $5, $6, $7, $8, $9, $10);

-- name: next_seals
-- tenant: platform
-- The seals after the number $1, in order.
select n, from_xid::text::bigint as from_xid, to_xid::text::bigint as to_xid, rows, entries, previous, hash, sealed_at, key_id, signature
from horai.audit_seal where n > $1 order by n limit $2;

-- name: rows_between
-- tenant: platform
-- The rows of an interval of transactions, both ends included, after the position ($3, $4).
select id, tenant_id, at, xid, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb, object_kind, object_id, object_name,
    before::text as before, after::text as after, counts::text as counts, null::bigint as seal
from horai.audit
where xid between $1::text::xid8 and $2::text::xid8 and (xid, id) > ($3::text::xid8, $4)
order by xid, id limit $5;

-- name: newest_anchor
-- tenant: platform
-- The newest dropped month, and its anchor; no row if none was dropped.
select month, seal, hash, rows from horai.audit_anchor order by month desc limit 1;

-- name: count_unsealed
-- tenant: platform
select count(*) from horai.audit where xid > $1::text::xid8;
