-- Keys and sessions: who may call the REST API, for which tenant and in which role.
-- A key of the platform has no tenant. Only the hash of a key is stored.
create table horai.access_key (
    id text collate "C" primary key,
    number bigint generated always as identity,
    tenant_id integer references horai.tenant,
    role text not null check (role in ('viewer', 'operator', 'admin', 'worker', 'platform-admin')),
    name text not null,
    hash bytea not null check (length(hash) = 32),
    networks cidr[] not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    check ((tenant_id is null) = (role = 'platform-admin'))
);
create index access_key_tenant on horai.access_key (tenant_id, number);

-- A session of the console stands for the key or the user with which it was opened.
create table horai.access_session (
    hash bytea primary key check (length(hash) = 32),
    key_id text collate "C" not null references horai.access_key on delete cascade,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null
);
create index access_session_expires on horai.access_session (expires_at);

-- One row from the first key on. It never goes away: a server whose last key was revoked stays closed.
create table horai.access_state (
    is_keyed boolean primary key default true check (is_keyed),
    keyed_at timestamptz not null default clock_timestamp()
);

create function horai.keep_keyed() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    raise exception 'a server that asks for keys never goes back to serving without them'
        using errcode = 'HR403', hint = 'Create a key: horai keys create --database-url URL.';
end $$;
revoke execute on function horai.keep_keyed from public;

create trigger keep_keyed before update or delete or truncate on horai.access_state
for each statement execute function horai.keep_keyed();

revoke all on horai.access_key, horai.access_session, horai.access_state from public;
