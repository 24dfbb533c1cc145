"""Every migration after the first rolling upgrade is online, and leaves old nodes the schema that they use."""

import pytest
from migration_rules import broken_rules

from horai.db.migrate import Migration, migrations
from horai.db.migration_locks import OnlineRule

LAST_BEFORE_THE_RULES = "alert_links"
BEFORE = Migration(
    1,
    "before",
    "create table horai.big (id integer); create table horai.tenant (id integer); create function horai.f() returns int"
    " language sql as 'select 1'; create view horai.v as select 1",
)


def test_every_later_migration_keeps_the_rules_of_the_upgrade_page() -> None:
    """docs/guides/upgrading.md lists the rules. A message names the file, the statement, the rule and the way out."""
    (since,) = [migration.number for migration in migrations() if migration.name == LAST_BEFORE_THE_RULES]

    broken = broken_rules(migrations(), since)

    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("create index i on horai.big (id)", OnlineRule.CONCURRENT_INDEX),
        ("create index concurrently if not exists i on horai.big (id)", OnlineRule.OWN_FILE),
        ("-- no-transaction\ncreate index concurrently i on horai.big (id)", OnlineRule.REPEATABLE),
        ("-- no-transaction\nalter table horai.big add column a integer", OnlineRule.REPEATABLE),
        ("-- no-transaction\ninsert into horai.big values (1)", OnlineRule.REPEATABLE),
        ("alter table horai.big add column a uuid default gen_random_uuid()", OnlineRule.CONSTANT_DEFAULT),
        ("alter table horai.big alter column id type bigint", OnlineRule.SAME_TYPE),
        ("alter table horai.big alter column id set not null", OnlineRule.VALIDATED_NOT_NULL),
        ("alter table horai.big add column a integer not null", OnlineRule.VALIDATED_NOT_NULL),
        ("alter table horai.big add check (id > 0)", OnlineRule.VALIDATED_CONSTRAINT),
        ("alter table horai.big add primary key (id)", OnlineRule.INDEXED_CONSTRAINT),
        ("alter table horai.big set logged", OnlineRule.NO_REWRITE),
        ("delete from horai.big", OnlineRule.ROWS_IN_PORTIONS),
        ("do $$ begin execute 'select 1'; end $$", OnlineRule.KNOWN_BLOCK),
        (
            "alter table horai.big add constraint k check (id > 0) not valid; alter table horai.big validate constraint k",
            OnlineRule.SHORT_TRANSACTION,
        ),
        ("alter table horai.big drop column id", OnlineRule.KEPT_FOR_ONE_MINOR),
        ("alter table horai.big rename column id to number", OnlineRule.KEPT_FOR_ONE_MINOR),
        ("drop table horai.big", OnlineRule.KEPT_FOR_ONE_MINOR),
        ("drop view horai.v", OnlineRule.KEPT_FOR_ONE_MINOR),
        ("-- unused since: 0.1\ndrop function horai.f()", OnlineRule.KEPT_FOR_ONE_MINOR),
    ],
)
def test_a_file_that_breaks_a_rule_is_named_with_the_rule_and_the_page(text: str, rule: OnlineRule) -> None:
    (message,) = broken_rules([BEFORE, Migration(2, "later", text)], since=1)

    assert message.startswith("0002_later: `")
    assert f"breaks the rule {rule.id} of docs/guides/upgrading.md. {rule}" in message
    assert broken_rules([BEFORE, Migration(2, "later", text)], since=2) == [], "a landed migration never changes"


@pytest.mark.parametrize(
    "text",
    [
        "create table horai.fresh (id integer references horai.big); create index i on horai.fresh (id)",
        "alter table horai.big add column a integer not null default 3, add column b timestamptz default now()",
        "-- no-transaction\ncreate index concurrently if not exists i on horai.big (id)",
        "create index i on horai.tenant (id); update horai.tenant set id = 1",
        "alter table horai.big drop constraint k, alter column id drop default",
        "drop function horai.f(); create function horai.f(a int) returns int language sql as 'select a'",
        "-- online: portions of 1,000 rows\ndo $$ begin update horai.big set id = 1; end $$",
        "create or replace view horai.v as select 1; grant select on horai.v to public",
    ],
)
def test_a_file_that_keeps_the_rules_passes(text: str) -> None:
    assert broken_rules([BEFORE, Migration(2, "later", text)], since=1) == []


def test_not_null_may_follow_a_check_that_an_earlier_file_validated() -> None:
    files = [
        Migration(2, "check", "alter table horai.big add constraint k check (id is not null) not valid"),
        Migration(3, "validate", "alter table horai.big validate constraint k"),
        Migration(4, "set", "alter table horai.big alter column id set not null"),
    ]

    assert broken_rules([BEFORE, *files], since=1) == []
    (message,) = broken_rules([BEFORE, files[0], files[2]], since=1)
    assert OnlineRule.VALIDATED_NOT_NULL.id in message


def test_a_drop_is_allowed_one_minor_version_after_the_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horai.db.releases.FIRST_MIGRATIONS", {"0.1": 1, "0.2": 2})
    dropped = Migration(2, "later", "-- unused since: 0.1\nalter table horai.big drop column id")

    assert broken_rules([BEFORE, dropped], since=1) == []
    too_soon = Migration(2, "later", "-- unused since: 0.2\nalter table horai.big drop column id")
    assert len(broken_rules([BEFORE, too_soon], since=1)) == 1
