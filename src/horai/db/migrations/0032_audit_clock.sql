-- The audit log goes on after a restore from a dump (docs/decisions/0037-audit-rows-are-sealed-by-transaction.md).

-- Rows of the audit log are sealed in the order of transactions. A new server counts transactions from the beginning, so rows that
-- are written after a restore from a dump would sort before sealed ones. `shift` is added to the number of each transaction.
create table horai.audit_clock (
    only_row boolean primary key default true check (only_row),
    shift bigint not null default 0 check (shift >= 0)
);
insert into horai.audit_clock default values;
revoke all on horai.audit_clock from public;

-- The number of the current transaction in the order of the audit log.
create function horai.audit_xid() returns xid8
language sql volatile set search_path = pg_catalog as $$
    select (pg_current_xact_id()::text::bigint + shift)::text::xid8 from horai.audit_clock
$$;

-- The oldest open transaction in the order of the audit log: all transactions below it have ended.
create function horai.audit_horizon() returns bigint
language sql volatile set search_path = pg_catalog as $$
    select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + shift from horai.audit_clock
$$;

-- Move the order on if the server is behind rows that it has, as after a restore from a dump; return how far. Processes call it
-- before they write. The rows are read before the number of the next transaction: on a server that was not restored, every row
-- that is seen is older, so nothing moves.
create function horai.continue_audit() returns bigint
language plpgsql volatile set search_path = pg_catalog as $$
declare
    reached bigint;
    next_xid bigint;
begin
    reached := greatest(
        (select seal.to_xid::text::bigint from horai.audit_seal seal order by seal.n desc limit 1),
        (select audit.xid::text::bigint from horai.audit order by audit.xid desc limit 1));
    next_xid := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + (select shift from horai.audit_clock);
    if reached is null or reached < next_xid then
        return 0;
    end if;
    perform pg_advisory_xact_lock(1215263330, 0);  -- no process seals meanwhile, and one of several processes moves the order
    next_xid := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + (select shift from horai.audit_clock);
    if reached < next_xid then
        return 0;
    end if;
    update horai.audit_clock set shift = shift + reached - next_xid + 1;
    return reached - next_xid + 1;
end $$;

-- The order never moves back: rows would be sealed twice, or never.
create function horai.refuse_audit_clock_change() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    if tg_op = 'UPDATE' and new.shift > old.shift then
        return new;
    end if;
    raise exception using errcode = 'insufficient_privilege', message = format('horai.audit_clock only moves on: %s is refused', tg_op);
end $$;
create trigger moves_on before update or delete on horai.audit_clock for each row execute function horai.refuse_audit_clock_change();
create trigger never_truncated before truncate on horai.audit_clock for each statement execute function horai.refuse_audit_clock_change();
revoke execute on function horai.audit_xid, horai.audit_horizon, horai.continue_audit, horai.refuse_audit_clock_change from public;

alter table horai.audit alter column xid set default horai.audit_xid();
