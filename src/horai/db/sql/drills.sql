-- Counts of a drill (`horai drill`), over the whole database: a drill starts its own.

-- name: drill_has_live
-- tenant: platform
select exists (select from horai.instance_live);

-- name: drill_ended
-- tenant: platform
select id, horai.state_name(state) as ended, finished_at from horai.instance_history;

-- name: drill_losses
-- tenant: platform
-- The attempts of each instance that ended with their node: each of them explains one repeated call.
select instance_id, count(*) as losses from horai.attempt where error_code = 'NODE_LOST' and not late group by instance_id;

-- name: drill_letters
-- tenant: platform
select instance_id from horai.dead_letter where replay_status = 'NEW';
