"""The named statements: each parses, each is known to PostgreSQL."""

import pytest

from horai.db import catalog
from horai.db.catalog import CATALOG, sql
from horai.db.pool import Dedicated


async def test_every_statement_is_one_that_postgresql_understands(connection: Dedicated):
    for name, statement in CATALOG.items():
        await connection.prepare(statement.text)
        assert name in statement.text, "the name travels with the statement into the server's log"


def test_a_statement_reaches_to_the_next_name():
    found = catalog._parse(
        "f.sql", "-- intro\n-- name: one\n-- moves: A -> B\nselect 1;\n\n-- name: two\n-- why\nselect 2;\n"
    )

    assert list(found) == ["one", "two"]
    assert found["one"].text.endswith("select 1")
    assert (found["one"].moves, found["two"].moves) == ("A -> B", None)
    assert "select 2" not in found["one"].text


def test_an_unknown_name_is_an_error_at_once():
    with pytest.raises(KeyError):
        sql("no_such_statement")


def test_each_statement_is_named_after_what_guards_it():
    guarded = [s for s in CATALOG.values() if "live.fence = report.fence" in s.text]

    assert {s.name for s in guarded} == {s.name for s in CATALOG.values() if s.name.endswith("_if_running")}
    assert all("for update of live skip locked" in s.text for s in guarded)
