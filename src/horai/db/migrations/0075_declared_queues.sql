-- Queues that the code of an application declares (docs/guides/queues.md). null: no application declares the queue.
alter table horai.queue add column declared_by text;
