"""The plan's judgement of a statement against what PostgreSQL does: locks, scans, rewrites."""

import asyncio
from dataclasses import dataclass

import pytest
from databases import Superuser

from horai.db.migrate import migrations
from horai.db.migration_effects import effects_of
from horai.db.migration_locks import LockMode, OnlineRule, TableEffect, Work
from horai.db.sql_script import split_script

AE, SUE, SRE = LockMode.ACCESS_EXCLUSIVE, LockMode.SHARE_UPDATE_EXCLUSIVE, LockMode.SHARE_ROW_EXCLUSIVE
MODES = {
    "AccessShareLock": LockMode.NONE,
    "RowShareLock": LockMode.NONE,
    "RowExclusiveLock": LockMode.ROW_EXCLUSIVE,
    "ShareUpdateExclusiveLock": SUE,
    "ShareLock": LockMode.SHARE,
    "ShareRowExclusiveLock": SRE,
    "AccessExclusiveLock": AE,
}
ORDER = list(LockMode)
TABLES = """
create schema s;
create table s.other (id bigint primary key);
create table s.t (id bigint primary key, a integer, b varchar(10), c text, checked integer,
    constraint checked_there check (checked is not null));
insert into s.other select n from generate_series(1, 500) n;
insert into s.t select n, n, 'b', 'c', n from generate_series(1, 500) n;
create unique index t_a on s.t (a);
alter table s.t add constraint a_there check (a is not null) not valid;
create function s.touched() returns trigger language plpgsql as 'begin return null; end';
create trigger t_touched after update on s.t for each row execute function s.touched();
create policy p on s.t using (true);
"""
CASES: list[tuple[str, LockMode, Work]] = [
    ("alter table s.t add column d integer", AE, Work.CATALOG),
    ("alter table s.t add column d integer not null default 5", AE, Work.CATALOG),
    ("alter table s.t add column d timestamptz default now()", AE, Work.CATALOG),
    ("alter table s.t add column d jsonb not null default jsonb_build_object('a', 1)", AE, Work.CATALOG),
    ("alter table s.t add column d numeric(10, 2) default 1.5::numeric(10, 2)", AE, Work.CATALOG),
    ("alter table s.t add column d timestamptz default clock_timestamp()", AE, Work.REWRITE),
    ("alter table s.t add column d uuid not null default gen_random_uuid()", AE, Work.REWRITE),
    ("alter table s.t add column d bigserial", AE, Work.REWRITE),
    ("alter table s.t add column d bigint generated always as identity", AE, Work.REWRITE),
    ("alter table s.t add column d integer generated always as (a + 1) stored", AE, Work.REWRITE),
    ("alter table s.t add column d integer unique", AE, Work.INDEX),
    ("alter table s.t add column d integer default 1 check (d > 0)", AE, Work.SCAN),
    ("alter table s.t add column d bigint references s.other", AE, Work.CATALOG),
    ("alter table s.t alter column a type bigint", AE, Work.REWRITE),
    ("alter table s.t alter column a set not null", AE, Work.SCAN),
    ("alter table s.t alter column a set default 3", AE, Work.CATALOG),
    ("alter table s.t alter column a set statistics 500", SUE, Work.CATALOG),
    ("alter table s.t add constraint k check (a > 0)", AE, Work.SCAN),
    ("alter table s.t add constraint k check (a > 0) not valid", AE, Work.CATALOG),
    ("alter table s.t validate constraint a_there", SUE, Work.SCAN),
    ("alter table s.t add constraint k foreign key (id) references s.other", SRE, Work.SCAN),
    ("alter table s.t add constraint k foreign key (id) references s.other not valid", SRE, Work.CATALOG),
    ("alter table s.t add constraint k unique (c, id)", AE, Work.INDEX),
    ("alter table s.t add constraint k unique using index t_a", AE, Work.CATALOG),
    ("alter table s.t drop column a", AE, Work.CATALOG),
    ("alter table s.t rename column a to z", AE, Work.CATALOG),
    ("alter table s.t enable row level security, force row level security", AE, Work.CATALOG),
    ("alter table s.t disable trigger t_touched", SRE, Work.CATALOG),
    ("alter table s.t set (fillfactor = 90)", SUE, Work.CATALOG),
    ("alter table s.t set unlogged", AE, Work.REWRITE),
    ("create index i on s.t (c)", LockMode.SHARE, Work.INDEX),
    ("create unique index i on s.t (id, c) where a > 3", LockMode.SHARE, Work.INDEX),
    ("create trigger u after insert on s.t for each row execute function s.touched()", SRE, Work.CATALOG),
    ("drop trigger t_touched on s.t", AE, Work.CATALOG),
    ("create policy q on s.t for select using (true)", AE, Work.CATALOG),
    ("drop policy p on s.t", AE, Work.CATALOG),
    ("create table s.u (id bigint references s.t)", SRE, Work.CATALOG),
    ("lock table s.t in share mode", LockMode.SHARE, Work.CATALOG),
    ("do $$ begin alter table s.t add column d integer; end $$", AE, Work.CATALOG),
    ("update s.t set a = a + 1000 where id < 10", LockMode.ROW_EXCLUSIVE, Work.ROWS),
    (
        "with gone as (delete from s.t where id < 3 returning id) select count(*) from gone",
        LockMode.ROW_EXCLUSIVE,
        Work.ROWS,
    ),
    ("insert into s.t (id, a, checked) values (1000, 1000, 1)", LockMode.NONE, Work.CATALOG),
    ("revoke all on s.t from public", LockMode.NONE, Work.CATALOG),
]


@dataclass(frozen=True, slots=True)
class Seen:
    lock: LockMode
    is_rewritten: bool
    is_read: bool


async def seen(connection: Superuser, statement: str) -> Seen:
    """Return what PostgreSQL does to s.t; the statement is rolled back."""
    file = "select pg_relation_filenode('s.t')"
    scans = "select seq_scan + idx_scan from pg_stat_xact_user_tables where relid = 's.t'::regclass"
    held = "select mode from pg_locks where pid = pg_backend_pid() and relation = $1::oid"
    transaction = connection.transaction()
    await transaction.start()
    try:
        oid = await connection.fetchval("select 's.t'::regclass::oid")
        before = await connection.fetchval(file), await connection.fetchval(scans) or 0
        await connection.execute(statement)
        modes = [MODES[row["mode"]] for row in await connection.fetch(held, oid)]
        after = await connection.fetchval(file), await connection.fetchval(scans) or 0
        return Seen(max(modes, key=ORDER.index, default=LockMode.NONE), before[0] != after[0], before[1] != after[1])
    finally:
        await transaction.rollback()


@pytest.fixture
def tables(runner: asyncio.Runner, connection: Superuser) -> Superuser:
    runner.run(connection.execute(TABLES))
    return connection


async def test_the_plan_says_of_a_statement_what_postgresql_does(tables: Superuser) -> None:
    for text, lock, work in CASES:
        (statement,) = split_script(text)
        effects = [effect for effect in effects_of(statement) if effect.table == "s.t"]
        told = effects[0] if effects else TableEffect()
        real = await seen(tables, text)

        assert (told.lock, told.work) == (lock, work), text
        is_insert = text.startswith("insert")  # its rows are new: nothing waits for them
        assert real.lock == (LockMode.ROW_EXCLUSIVE if is_insert else lock), text
        assert real.is_rewritten == (work is Work.REWRITE), text
        if work is not Work.ROWS:
            assert real.is_read == work.is_long, text


async def test_a_validated_check_spares_the_scan_of_set_not_null(tables: Superuser) -> None:
    real = await seen(tables, "alter table s.t alter column checked set not null")

    assert (real.lock, real.is_rewritten, real.is_read) == (AE, False, False)


@pytest.mark.parametrize(
    "text",
    [
        "alter table s.t alter column b type varchar(20)",  # PostgreSQL reads no row
        "alter table s.t add column d text default horai.anything()",  # it may be volatile
        "do $$ begin execute format('alter table %I', 't'); end $$",
        "call s.everything()",
    ],
)
def test_doubt_is_judged_as_not_online(text: str) -> None:
    (statement,) = split_script(text)

    assert not all(effect.is_online for effect in effects_of(statement))


def test_a_concurrent_index_lets_writes_through() -> None:
    built, dropped = split_script(
        "create unique index concurrently if not exists i on s.t (a); drop index concurrently if exists s.i"
    )

    assert effects_of(built) == [TableEffect("s.t", SUE, Work.INDEX)]
    assert [effect.is_online for effect in (*effects_of(built), *effects_of(dropped))] == [True, True]


def test_a_block_that_says_why_it_is_online_is_taken_at_its_word() -> None:
    text = "do $$ begin execute 'grant usage on schema s to public'; end $$"
    (silent,), (told,) = split_script(text), split_script(f"-- online: it only grants\n{text}")

    assert [effect.rule for effect in effects_of(silent)] == [OnlineRule.KNOWN_BLOCK]
    assert effects_of(told) == []


def test_every_statement_of_every_migration_so_far_is_understood() -> None:
    """But for blocks of code, of which five build statements."""
    statements = [statement for migration in migrations() for statement in migration.statements()]
    unknown = [each for each in statements if any(e.work is Work.UNKNOWN for e in effects_of(each))]

    assert {each.words[0] for each in unknown} <= {"do"}


@pytest.mark.parametrize("rule", list(OnlineRule))
def test_every_rule_is_on_the_page_that_its_message_names(rule: OnlineRule) -> None:
    from pages import ROOT  # noqa: PLC0415

    from horai.db.migration_locks import PAGE  # noqa: PLC0415

    assert f"`{rule.id}`" in (ROOT / PAGE).read_text()
