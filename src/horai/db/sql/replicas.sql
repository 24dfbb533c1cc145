-- Read replicas: positions in the log of the primary and of a standby, and the identity of their database.

-- name: primary_position
-- tenant: none
-- Returns the end of the log. A transaction may be visible before its record is written, so it is the end of the inserted log. The
-- snapshot is older than the position: what the row of the node ($1) shows is replayed at that position.
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as lsn, left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline,
    (select lease_until from horai.node where incarnation = $1) as lease_until;

-- name: replayed_position
-- tenant: none
-- Returns what a standby has replayed, with the lease of the node $1. `idle` is the time since its last transaction in seconds, by
-- the clock of the standby.
select pg_is_in_recovery() as is_standby, pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint as lsn,
    (select lease_until from horai.node where incarnation = $1) as lease_until,
    extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::double precision as idle;

-- name: database_identity
-- tenant: none
-- A standby has the same numbers as its primary. Another database of the same server has another oid.
select (select system_identifier::text from pg_control_system()) as system, oid::bigint as number
from pg_database where datname = current_database();

-- name: reticent_database_identity
-- tenant: none
-- The same for a managed service that hides its identity from its users.
select null::text as system, oid::bigint as number from pg_database where datname = current_database();
