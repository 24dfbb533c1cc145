#!/bin/sh
# PostgreSQL runs this once, on an empty volume: the owner of the schema, the login of nodes, and the roles of row-level security.
set -eu
password() { tr -d '\n' < "${SECRETS:-/run/secrets}/$1"; }
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname "$POSTGRES_DB" \
    --set owner_password="$(password owner-password)" --set node_password="$(password node-password)" \
    --set database="$POSTGRES_DB" <<'SQL'
create role horai_owner login password :'owner_password';
create role horai_node login password :'node_password';
select format('create role %I nologin', role) from unnest(array['horai_api', 'horai_auth', 'horai_engine']) as role
where not exists (select from pg_roles where rolname = role) \gexec
grant horai_api, horai_auth, horai_engine to horai_owner, horai_node;
alter database :"database" owner to horai_owner;
revoke connect on database :"database" from public;
grant connect on database :"database" to horai_node;
SQL
