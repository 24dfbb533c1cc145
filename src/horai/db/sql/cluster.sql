-- The identity of the cluster.

-- name: cluster_id
-- tenant: platform
select id from horai.cluster;
