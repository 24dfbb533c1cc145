-- no-transaction
-- The instances of a key that run or may be claimed, and those that wait for a place of their key. Neither has a column that a claim
-- changes: claims stay HOT updates. An instance without a key is in neither.
create index concurrently if not exists instance_live_keyed on horai.instance_live (job_id, concurrency_key, due)
    where concurrency_key is not null and lane <> 0;
create index concurrently if not exists instance_live_key_parked on horai.instance_live (job_id, concurrency_key, id)
    where concurrency_key is not null and lane = 0;
