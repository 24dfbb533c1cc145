-- Queues have labels for people, and the reason of their pause.
alter table horai.queue add column title text, add column description text, add column owner text, add column note text;
