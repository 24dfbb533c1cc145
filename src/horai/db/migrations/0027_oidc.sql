-- Sign-in by OpenID Connect: groups of users with their roles, sessions of users, and sign-ins in progress.

-- A group of the identity provider gives its users a role in a tenant, or that of the platform (tenant_id null). Sessions read
-- this table: a mapping that is deleted ends the sessions that rest on it.
create table horai.access_group (
    id bigint generated always as identity primary key,
    name text collate "C" not null check (length(name) between 1 and 256),
    tenant_id integer references horai.tenant,
    role text not null check (role in ('viewer', 'operator', 'admin', 'platform-admin')),
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null,
    check ((tenant_id is null) = (role = 'platform-admin'))
);
create unique index access_group_once on horai.access_group (name, coalesce(tenant_id, 0));

-- A session stands for a key or for a user. That of a user has the groups that the provider named at the sign-in, and the tenant
-- in which the user acts (null: the platform).
alter table horai.access_session
    alter column key_id drop not null,
    add column subject text,
    add column user_name text,
    add column groups text[],
    add column chosen_tenant_id integer references horai.tenant,
    add constraint access_session_holder check (
        (key_id is null) = (subject is not null and user_name is not null and groups is not null)
    );

-- A sign-in that the provider has not answered yet. `hash` is that of the state, `browser` that of the cookie of the browser that
-- began it; nonce and code verifier are derived from both and are not stored.
create table horai.access_sign_in (
    hash bytea primary key check (length(hash) = 32),
    browser bytea not null check (length(browser) = 32),
    return_to text not null,
    expires_at timestamptz not null
);
create index access_sign_in_expires on horai.access_sign_in (expires_at);

revoke all on horai.access_group, horai.access_sign_in from public;
