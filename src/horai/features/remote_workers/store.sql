-- Remote workers.

-- name: handlers_of_tenant
-- tenant: $1
-- Returns those of the handlers $2 for which the tenant has or had a job. A tenant may have millions of jobs, and has few lanes.
select distinct handler from horai.lane where tenant_id = $1 and handler = any ($2::text[]);
