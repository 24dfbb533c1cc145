-- no-transaction
-- A letter that `horai import` has brought from another cluster comes once.
create unique index concurrently if not exists dead_letter_origin on horai.dead_letter (tenant_id, origin) where origin is not null;
