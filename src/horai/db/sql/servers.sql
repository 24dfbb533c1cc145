-- The properties of a server. Every role may call all functions used here.

-- name: describe_server
-- tenant: none
-- `timeline` is hexadecimal and null on a standby, where pg_walfile_name is not available. `has_settings` is false behind
-- a pooler that does not pass startup parameters on.
select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only')::boolean as is_read_only,
    (select system_identifier::text from pg_control_system()) as system,
    case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline,
    current_setting('horai.dialled', true) is not null as has_settings;

-- name: describe_reticent_server
-- tenant: none
-- The same for a managed service that hides its identity from its users.
select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only')::boolean as is_read_only,
    null::text as system, null::text as timeline, current_setting('horai.dialled', true) is not null as has_settings;

-- name: probe
-- tenant: none
show transaction_read_only;

-- name: backend
-- tenant: none
select pg_backend_pid();

-- name: apply_settings
-- tenant: none
-- Sets what the startup parameters would have set. The last name is that of the mark, so that either all are set or none.
select set_config(wanted.name, wanted.value, false) from unnest($1::text[], $2::text[]) as wanted (name, value);
