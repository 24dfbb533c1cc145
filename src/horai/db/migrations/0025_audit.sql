-- The audit log: one row for each write of a user, in the transaction of the write.

-- `tenant_id` is null for writes that concern the platform. There is no reference to the tenant: its rows outlive it. `xid` is the
-- transaction that wrote the row; rows are sealed in the order (xid, id) once no transaction with a lower xid is open. Ids cannot
-- serve for this: a transaction that took a lower id may commit later. before and after have only the changed fields.
create table horai.audit (
    id bigint generated always as identity,
    tenant_id integer,
    at timestamptz not null default clock_timestamp(),
    xid xid8 not null default pg_current_xact_id(),
    actor_kind text not null,
    actor_id text not null,
    actor_name text not null,
    actor_role text not null,
    address text not null,
    request_id text not null,
    verb text not null,
    object_kind text not null,
    object_id text not null,
    object_name text not null,
    before json,
    after json,
    counts json
) partition by range (at);
create index audit_unsealed on horai.audit (xid, id);
create index audit_listed on horai.audit (tenant_id, at desc, id desc);
create index audit_object on horai.audit (tenant_id, object_id);
create index audit_object_name on horai.audit (tenant_id, object_name);

-- A seal covers the rows with from_xid <= xid <= to_xid; the next seal begins after to_xid. `entries` has the id, xid, month and
-- digest of each row, so that a check can name the row that was changed; features/audit/rules.py defines its bytes and the hash.
-- `signature` is null if the node that sealed has no key.
create table horai.audit_seal (
    n bigint primary key,
    from_xid xid8 not null,
    to_xid xid8 not null,
    rows integer not null,
    entries bytea not null,
    previous bytea not null,
    hash bytea not null,
    sealed_at timestamptz not null,
    key_id text,
    signature bytea
);
create index audit_seal_range on horai.audit_seal (to_xid);

-- A month that retention has dropped, and the last seal with a row of it. Checks begin at the anchor of the newest such month.
create table horai.audit_anchor (
    month date primary key,
    seal bigint not null,
    hash bytea not null,
    rows bigint not null,
    dropped_at timestamptz not null default clock_timestamp()
);

-- Audit rows, seals and anchors are only added. Seals below an anchor are the exception: retention deletes them.
create function horai.refuse_audit_change() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    if tg_table_name = 'audit_seal' and tg_op = 'DELETE' then
        if old.n < (select max(anchor.seal) from horai.audit_anchor anchor) then
            return old;
        end if;
    end if;
    raise exception using errcode = 'insufficient_privilege', message = format('horai.%s is append-only: %s is refused', tg_table_name, tg_op);
end $$;
revoke execute on function horai.refuse_audit_change from public;

-- Each partition gets the row trigger of its parent, and a trigger for TRUNCATE of its own from make_audit_months.
create trigger append_only before update or delete on horai.audit for each row execute function horai.refuse_audit_change();
create trigger append_only before update or delete on horai.audit_seal for each row execute function horai.refuse_audit_change();
create trigger append_only before update or delete on horai.audit_anchor for each row execute function horai.refuse_audit_change();
create trigger never_truncated before truncate on horai.audit for each statement execute function horai.refuse_audit_change();
create trigger never_truncated before truncate on horai.audit_seal for each statement execute function horai.refuse_audit_change();
create trigger never_truncated before truncate on horai.audit_anchor for each statement execute function horai.refuse_audit_change();

-- The default partition catches rows of a month that was not created in time; such a month gets no partition any more.
create table horai.audit_default partition of horai.audit default;
create trigger never_truncated before truncate on horai.audit_default for each statement execute function horai.refuse_audit_change();

create function horai.make_audit_months(first_day date, months integer) returns integer
language plpgsql set search_path = pg_catalog as $$
declare
    made integer := 0;
    first date := date_trunc('month', first_day::timestamp)::date;
    month date;
    name text;
begin
    for step in 0 .. months - 1 loop
        month := (first + step * interval '1 month')::date;
        name := 'audit_' || to_char(month, 'YYYYMM');
        if to_regclass('horai.' || name) is null then
            begin
                execute format(
                    'create table horai.%I partition of horai.audit for values from (%L) to (%L)', name,
                    (month::timestamp at time zone 'UTC')::text, ((month + interval '1 month') at time zone 'UTC')::text);
                execute format(
                    'create trigger never_truncated before truncate on horai.%I for each statement execute function horai.refuse_audit_change()',
                    name);
                made := made + 1;
            exception when check_violation then
                raise warning 'horai.audit of % has strays in its default partition', month;
            end;
        end if;
    end loop;
    return made;
end $$;
revoke execute on function horai.make_audit_months from public;

-- Drops a month if each of its rows is sealed, and keeps the last seal with a row of it as an anchor. Returns the number of rows, or
-- null if the month has rows that are not sealed. The highest xid of the month leads to the anchor. A seal may have rows of two
-- months: seals are deleted only below the anchor and below the seal of the first row that is left.
create function horai.drop_audit_month(month date) returns bigint
language plpgsql set search_path = pg_catalog as $$
declare
    name text := 'audit_' || to_char(month, 'YYYYMM');
    dropped bigint;
    last_xid xid8;
    anchor record;
begin
    execute format('lock table horai.%I in share row exclusive mode', name);
    execute format('select count(*), (select xid from horai.%1$I order by xid desc limit 1) from horai.%1$I', name) into dropped, last_xid;
    if dropped > 0 then
        select seal.n, seal.hash into anchor from horai.audit_seal seal where seal.to_xid >= last_xid order by seal.to_xid limit 1;
        if not found then
            return null;
        end if;
        insert into horai.audit_anchor (month, seal, hash, rows) values (drop_audit_month.month, anchor.n, anchor.hash, dropped);
    end if;
    execute format('drop table horai.%I', name);
    if dropped > 0 then
        delete from horai.audit_seal seal where seal.n < anchor.n
            and not exists (select from horai.audit left_over where left_over.xid <= seal.to_xid);
    end if;
    return dropped;
end $$;
revoke execute on function horai.drop_audit_month from public;
