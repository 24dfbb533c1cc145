-- Versions of definitions. The caller has locked the object, so its versions come one after the other.

-- name: keep_version
-- tenant: $1
-- Adds a version of the object ($2, $3), and deletes those beyond its newest $11.
with gone as (
    delete from horai.definition_version old where old.tenant_id = $1 and old.kind = $2 and old.object_id = $3 and old.version in (
        select known.version from horai.definition_version known
        where known.tenant_id = $1 and known.kind = $2 and known.object_id = $3 order by known.version desc offset $11::integer - 1)
)
insert into horai.definition_version (tenant_id, kind, object_id, version, at, actor_kind, actor_id, actor_name, via, definition)
values ($1, $2, $3, $4, coalesce($5, clock_timestamp()), $6, $7, $8, $9, $10::json) on conflict do nothing;

-- name: keep_first_version
-- tenant: $1
-- The same without an actor, for an object that has no version yet: the definition that it had before its first recorded change.
insert into horai.definition_version (tenant_id, kind, object_id, version, at, actor_kind, actor_id, actor_name, via, definition)
select $1, $2, $3, $4, $5, '', '', '', '', $6::json
where not exists (select from horai.definition_version known where known.tenant_id = $1 and known.kind = $2 and known.object_id = $3)
on conflict do nothing;

-- name: list_versions
-- tenant: $1
select version, at, actor_kind, actor_id, actor_name, via, definition::text as definition from horai.definition_version
where tenant_id = $1 and kind = $2 and object_id = $3 order by version desc;

-- name: find_version
-- tenant: $1
select version, at, actor_kind, actor_id, actor_name, via, definition::text as definition from horai.definition_version
where tenant_id = $1 and kind = $2 and object_id = $3 and version = $4;

-- name: forget_versions
-- tenant: $1
delete from horai.definition_version where tenant_id = $1 and kind = $2 and object_id = $3;
