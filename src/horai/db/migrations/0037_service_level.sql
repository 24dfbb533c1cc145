-- The service level (docs/guides/governor.md): starts of all tenants per minute, and those of them that were on time.
create table horai.sli_minute (
    at timestamptz primary key,
    started bigint not null,
    on_time bigint not null,
    check (on_time between 0 and started)
);
revoke all on horai.sli_minute from public;
