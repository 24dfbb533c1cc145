"""Database URLs: SQLAlchemy's form is accepted, and all hosts of a URL are found."""

from pathlib import Path

import pytest

from horai.db.database_location import choose_database
from horai.db.urls import BadUrl, DatabaseHost, hosts_of, plain_url


@pytest.mark.parametrize(
    "scheme",
    ["postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg", "postgresql+psycopg2", "postgres+asyncpg"],
)
def test_a_url_of_sqlalchemy_is_read_as_one_of_postgresql(scheme: str) -> None:
    assert plain_url(f"{scheme}://u:p%40@h:1/db?sslmode=require") == "postgresql://u:p%40@h:1/db?sslmode=require"


def test_parameters_that_only_sqlalchemy_knows_are_left_out() -> None:
    assert plain_url("postgresql+asyncpg://h/db?prepared_statement_cache_size=0") == "postgresql://h/db"
    assert (
        plain_url("postgresql+asyncpg://h/db?async_fallback=1&sslmode=disable") == "postgresql://h/db?sslmode=disable"
    )


@pytest.mark.parametrize("other", ["mysql://h/db", "postgresql+other://h/db", "h/db", ""])
def test_any_other_url_is_left_as_it_is(other: str) -> None:
    assert plain_url(other) == other


@pytest.mark.parametrize("name", ["HORAI_DATABASE_URL", "DATABASE_URL"])
def test_flag_environment_and_file_accept_a_url_of_sqlalchemy(name: str, tmp_path: Path) -> None:
    theirs, ours = "postgresql+asyncpg://u@h/db", "postgresql://u@h/db"
    (tmp_path / "url").write_text(theirs)

    assert choose_database(theirs, None, {}).url == ours
    assert choose_database(None, None, {name: theirs}).url == ours
    assert choose_database(None, None, {"HORAI_DATABASE_URL_FILE": str(tmp_path / "url")}).url == ours


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://u:p@a,b:6000/db", [DatabaseHost("a", 5432), DatabaseHost("b", 6000)]),
        ("postgresql://[::1]:1,[fe80::2]/db", [DatabaseHost("::1", 1), DatabaseHost("fe80::2", 5432)]),
        ("postgresql://u@/db?host=/run/x,/run/y&port=7", [DatabaseHost("/run/x", 7), DatabaseHost("/run/y", 7)]),
        ("postgresql://u@%2Frun%2Fx/db", [DatabaseHost("/run/x", 5432)]),
        ("postgresql://u@/db?host=a,b&port=1,2", [DatabaseHost("a", 1), DatabaseHost("b", 2)]),
        ("postgresql:///db", []),
    ],
)
def test_all_hosts_of_a_url_are_found_in_their_order(url: str, hosts: list[DatabaseHost]) -> None:
    assert list(hosts_of(url, {})) == hosts


def test_hosts_may_come_from_the_environment() -> None:
    assert hosts_of("postgresql:///db", {"PGHOST": "a,b", "PGPORT": "1,2"}) == (
        DatabaseHost("a", 1),
        DatabaseHost("b", 2),
    )


@pytest.mark.parametrize("url", ["postgresql:///db?host=a,b,c&port=1,2", "postgresql://a:b:c/db"])
def test_hosts_that_cannot_be_read_are_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        hosts_of(url, {})
