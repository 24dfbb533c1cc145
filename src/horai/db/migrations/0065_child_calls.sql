-- Child calls of durable functions (docs/guides/durable-steps.md): a function calls another job and continues with its result.

-- kind: 6 the call of another job; child: the instance that the call has created. Not validated: all rows satisfied the narrower check.
alter table horai.step add column child bigint;
alter table horai.step drop constraint step_kind;
alter table horai.step add constraint step_kind check (kind between 1 and 6) not valid;

-- The children of calls. is_open: the end of the child has not been told to its caller. The row outlives the record of the call, which goes
-- when its caller starts over: a sweep then finds the child and cancels it.
create table horai.child_call (
    child_id bigint primary key,
    parent_id bigint not null,
    tenant_id integer not null,
    n integer not null,
    is_open boolean not null default true,
    name text collate "C" not null
);
create index child_call_open on horai.child_call (child_id) where is_open;
create index child_call_of_parent on horai.child_call (parent_id, child_id);

-- The jobs that were called: processes announce the ends of their instances.
create table horai.called_job (
    job_id bigint primary key,
    tenant_id integer not null
);
revoke all on horai.child_call, horai.called_job from public;
