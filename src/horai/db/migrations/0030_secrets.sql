-- Secrets encrypted at rest. The server has no key: values are sealed and opened by the processes that use them.

-- One data key per tenant and month. `wrapped` is the key under the key-encryption key whose id is `kek`, which no database
-- holds. Without its data keys, a tenant's sealed values cannot be read again, in no backup either.
create table horai.data_key (
    tenant_id integer not null references horai.tenant,
    id text not null,
    month date not null,
    wrapped bytea not null,
    kek text not null,
    created_at timestamptz not null default clock_timestamp(),
    wrapped_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, id),
    unique (tenant_id, month)
);

-- The named secrets of a tenant. `value` is an envelope, never a plain value.
create table horai.secret (
    tenant_id integer not null references horai.tenant,
    name text not null,
    value json not null,
    version integer not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, name),
    check (value ->> '$enc' = '1')
);

-- The jobs whose target names a secret: a secret in use is not deleted.
create index job_named_secrets on horai.job (tenant_id)
where deleted_at is null and definition #>> '{target,headers}' like '%"secret":%';
