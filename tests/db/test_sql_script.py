"""Scripts are split where PostgreSQL's own client splits them, and nowhere else."""

import re

import pytest
from databases import Superuser

from horai.db.migrate import migrations
from horai.db.sql_script import split_script


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("select 1; select 2", ["select 1", "select 2"]),
        ("select ';'; select 'it''s; so'", ["select ';'", "select 'it''s; so'"]),
        (r"select e'\';'; select 2", [r"select e'\';'", "select 2"]),
        ('select ";" from a; select 2', ['select ";" from a', "select 2"]),
        ("do $$ begin; end; $$; select 2", ["do $$ begin; end; $$", "select 2"]),
        ("do $x$ select $$;$$; $x$; select 2", ["do $x$ select $$;$$; $x$", "select 2"]),
        ("/* a; /* b; */ c; */ select 1; -- d; e\nselect 2", ["select 1", "select 2"]),
        (
            "create function f() returns int begin atomic select case when true then 1; end; select 2; end; select 3",
            [
                "create function f() returns int begin atomic select case when true then 1; end; select 2; end",
                "select 3",
            ],
        ),
        (";;\n-- only a comment\n", []),
    ],
)
def test_a_semicolon_ends_a_statement_unless_it_is_quoted(script: str, statements: list[str]) -> None:
    assert [statement.text for statement in split_script(script)] == statements


def test_words_are_in_lower_case_and_what_is_quoted_stays_as_it_is() -> None:
    (statement,) = split_script("""Create INDEX "My;Index" ON horai.Event (At) WHERE kind = 'LOST'""")

    assert statement.words == (
        *("create", "index", '"My;Index"', "on", "horai", ".", "event"),
        *("(", "at", ")", "where", "kind", "=", "'LOST'"),
    )
    assert statement.after(6) == " (At) WHERE kind = 'LOST'"


def test_a_note_is_a_comment_above_its_statement() -> None:
    first, second = split_script("-- online: no row is read\n-- more\ndo $$ begin end $$;\nselect 1")

    assert (first.note("online"), first.note("unused since")) == ("no row is read", None)
    assert second.note("online") is None


async def test_the_statements_of_every_migration_make_the_schema_that_the_file_makes(connection: Superuser) -> None:
    """Statement by statement, in one transaction: PostgreSQL refuses a script that is cut in the wrong place."""
    made = "select array_agg(relname::text order by relname) from pg_class where relnamespace = 'horai'::regnamespace"
    before = await connection.fetchval(made)
    await connection.execute("drop schema horai cascade; create schema horai")

    async with connection.transaction():
        for migration in migrations():
            for statement in migration.statements():
                text = statement.text if migration.in_transaction else statement.text.replace(" concurrently", "")
                await connection.execute(text)

    after = await connection.fetchval(made)
    of_days = re.compile(r"_20\d{4}")  # made later, day by day and month by month
    assert {name for name in before if not of_days.search(name)} - set(after) == {"migration", "migration_pkey"}
