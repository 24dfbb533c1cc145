-- Count the work of each tenant on its own: a tenant reads its figures, and not those of all tenants together. The counts of
-- the last hours were of all tenants and cannot be divided.
delete from horai.minute;
alter table horai.minute add column tenant_id integer not null;
alter table horai.minute drop constraint minute_pkey, add primary key (tenant_id, at, node);
create index minute_at on horai.minute (at);

delete from horai.gauge;
alter table horai.gauge add column tenant_id integer not null;
alter table horai.gauge drop constraint gauge_pkey, add primary key (tenant_id, at);
create index gauge_at on horai.gauge (at);
