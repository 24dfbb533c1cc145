-- Upkeep of the table of live instances.

-- name: dead_live_rows
-- tenant: platform
-- Returns the estimated number of dead rows. No row: this login may not vacuum the table; before PostgreSQL 17 only its owner may.
select pg_stat_get_dead_tuples(oid) as rows from pg_class
where oid = 'horai.instance_live'::regclass and case
    when current_setting('server_version_num')::integer >= 170000 then has_table_privilege(oid, 'maintain')
    else pg_has_role(relowner, 'usage') end;

-- name: vacuum_live_table
-- tenant: platform
-- Skips the table while another process vacuums it. Does not shrink the file: that would lock the table.
vacuum (skip_locked true, truncate false, parallel 0) horai.instance_live;
