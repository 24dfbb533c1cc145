"""The flags and variables of a read replica."""

from datetime import timedelta
from pathlib import Path

import pytest
import typer

from horai.cli.errors import BadUsage
from horai.cli.replica_flags import chosen_replica
from horai.core.settings import ReplicaSettings

URL = "postgresql://horai_node@db2,db3/horai"


def test_without_a_url_there_is_no_replica():
    assert chosen_replica(None, "5s", {}) is None


def test_the_flag_comes_before_the_variable_and_the_variable_before_its_file(tmp_path: Path):
    file = tmp_path / "url"
    file.write_text(f"{URL}\n")
    named = {"HORAI_READ_DATABASE_URL_FILE": str(file)}
    other = "postgresql://db9/horai"

    assert chosen_replica(None, "5s", named) == ReplicaSettings(URL, timedelta(seconds=5))
    assert chosen_replica(None, "1m", {**named, "HORAI_READ_DATABASE_URL": other}) == ReplicaSettings(
        other, timedelta(minutes=1)
    )
    assert chosen_replica(URL, "5s", {"HORAI_READ_DATABASE_URL": other}) == ReplicaSettings(URL)


def test_a_url_of_sqlalchemy_is_taken():
    assert chosen_replica("postgresql+asyncpg://db2/horai", "5s", {}) == ReplicaSettings("postgresql://db2/horai")


@pytest.mark.parametrize(("lag", "named"), [("50ms", "at least 100ms"), ("soon", "is not a duration")])
def test_a_lag_that_is_too_short_or_no_duration_is_refused(lag: str, named: str):
    with pytest.raises(typer.BadParameter, match=named):
        chosen_replica(URL, lag, {})


def test_a_url_of_another_database_is_refused_without_showing_its_password():
    with pytest.raises(typer.BadParameter, match="must begin with postgresql://") as of_flag:
        chosen_replica("mysql://user:geheim@db2/horai", "5s", {})
    with pytest.raises(BadUsage, match="HORAI_READ_DATABASE_URL") as of_variable:
        chosen_replica(None, "5s", {"HORAI_READ_DATABASE_URL": "mysql://user:geheim@db2/horai"})

    assert "geheim" not in str(of_flag.value) + str(of_variable.value) + repr(ReplicaSettings("x:geheim"))
