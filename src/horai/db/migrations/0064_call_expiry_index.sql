-- no-transaction
-- The instances that expire, for the stage that cancels them. An instance without an expiry is not in it, and a claim changes no column of it.
create index concurrently if not exists instance_live_expires on horai.instance_live (expires_at) where expires_at is not null;
