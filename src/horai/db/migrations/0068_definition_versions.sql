-- Versions of definitions (docs/guides/definitions.md, docs/decisions/0071): what a job, workflow, queue or reconciler was after each change.

-- The definition is as responses show it: header values, query values and passwords are ***, and the payload of an encrypted job is left out.
-- `version` is the version of the object after the change; a pause takes a version and leaves no row. The actor is empty for the definition
-- that an object had when its first change was recorded. One object keeps its newest 50.
create table horai.definition_version (
    tenant_id integer not null,
    kind text not null check (kind in ('job', 'workflow', 'queue', 'reconciler')),
    object_id bigint not null,
    version integer not null,
    at timestamptz not null,
    actor_kind text not null,
    actor_id text not null,
    actor_name text not null,
    via text not null,
    definition json not null,
    primary key (tenant_id, kind, object_id, version)
);
revoke all on horai.definition_version from public;
