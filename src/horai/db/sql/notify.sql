-- Wakes between processes, on one channel. core/wakes.py encodes and decodes the payloads.

-- name: notify
-- tenant: none
-- Run it in a transaction that writes nothing else: a commit with a notification takes a global lock, which then is not held
-- during a disk write.
select pg_notify('horai_wake', $1);
