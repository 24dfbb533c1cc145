-- Wakes between processes, on one channel. core/wakes.py writes and reads what they say.

-- name: notify
-- Its transaction has nothing else to write: the lock that a notifying commit takes is held for no disk.
select pg_notify('horai_wake', $1);
