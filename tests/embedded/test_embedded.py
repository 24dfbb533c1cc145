"""The embedded PostgreSQL, with real processes: what it promises when all is well, and what it says."""

import asyncio
import os
import stat
import subprocess
from pathlib import Path

import asyncpg
import psutil
import pytest
from embedded_servers import as_root, ask, copied, run, running, unprivileged, until, watched

from horai.embedded import (
    DirectoryNotOurs,
    EmbeddedError,
    EmbeddedPostgres,
    EmbeddedSettings,
    NotRunning,
    binaries,
    server_log,
    url_of,
)
from horai.embedded.admin import admin_url
from horai.embedded.area import Area
from horai.embedded.sockets import choose_directory

# When all is well


def test_the_first_start_makes_a_utf8_database_named_horai_in_the_c_locale(place: Path) -> None:
    async def story() -> None:
        async with running(place / "new" / "data") as postgres:
            assert await ask(postgres.url, "SELECT current_database() || ' ' || current_user") == "horai horai_embedded"
            sql = "SELECT pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database WHERE datname = 'horai'"
            assert await ask(postgres.url, sql) == "UTF8 C"
            assert await ask(postgres.url, "SHOW server_version_num") >= "180000"

    run(story())


def test_data_is_kept_across_restarts_by_the_same_and_by_another_supervisor(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            await ask(postgres.url, "INSERT INTO kept VALUES ('more') RETURNING 1")
            await postgres.stop()
            await postgres.start()
            assert await ask(postgres.url, "SELECT count(*) FROM kept") == 2
        async with running(data_dir) as postgres:
            assert await ask(postgres.url, "SELECT count(*) FROM kept") == 2

    run(story())


def test_starting_twice_and_stopping_twice_is_the_same_as_once(data_dir: Path) -> None:
    async def story() -> None:
        postgres = EmbeddedPostgres(EmbeddedSettings(data_dir))
        await postgres.stop()
        await asyncio.gather(postgres.start(), postgres.start())
        first = postgres.pid
        await postgres.start()
        assert postgres.pid == first is not None
        await asyncio.gather(postgres.stop(), postgres.stop())
        await postgres.stop()
        assert postgres.pid is None

    run(story())


def test_a_stop_is_clean_even_with_clients_connected(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            client = await asyncpg.connect(postgres.url)
            await client.execute("BEGIN")
            await postgres.stop()
            client.terminate()
        async with running(data_dir):
            pass

    run(story())
    said = (data_dir / "server.log").read_text()
    assert "database system was shut down" in said
    assert "not properly shut down" not in said


def test_two_data_directories_run_side_by_side(data_dir: Path, place: Path, template: Path) -> None:
    async def story() -> None:
        second_dir = copied(template, place / "second")
        async with running(data_dir) as first, running(second_dir) as second:
            await ask(first.url, "UPDATE kept SET what = 'first' RETURNING 1")
            await ask(second.url, "UPDATE kept SET what = 'second' RETURNING 1")
            assert await ask(first.url, "SELECT what FROM kept") == "first"
            assert await ask(second.url, "SELECT what FROM kept") == "second"

    run(story())


@pytest.mark.parametrize(
    "name", ['it\'s "quoted" % and $HOME', "comma, space", "back\\slash", "数据", "long-" * 20, "a/" * 60 + "b"]
)
def test_any_path_will_do(place: Path, template: Path, name: str) -> None:
    async def story() -> None:
        data_dir = place / name
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        copied(template, data_dir)
        async with running(data_dir) as postgres:
            assert await ask(postgres.url, "SELECT what FROM kept") == "before"
            assert url_of(data_dir) == postgres.url

    run(story())


def test_a_long_path_gets_a_short_private_socket_directory_that_goes_away(place: Path, template: Path) -> None:
    async def story() -> None:
        data_dir = copied(template, place / ("long-" * 20))
        directory = choose_directory(Area.at(data_dir), 5432)
        async with running(data_dir):
            assert len(str(directory)) < 60
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert not directory.exists()

    run(story())


def test_the_url_of_a_running_server_is_found_by_its_data_directory(data_dir: Path) -> None:
    async def story() -> None:
        with pytest.raises(NotRunning, match="No embedded PostgreSQL runs in"):
            url_of(data_dir)
        async with running(data_dir, port=6543) as postgres:
            assert url_of(data_dir) == postgres.url
            assert "port=6543" in postgres.url
        with pytest.raises(NotRunning):
            url_of(data_dir)

    run(story())
    with pytest.raises(NotRunning):
        url_of(data_dir.parent / "never-made")


def test_psql_understands_the_url(data_dir: Path) -> None:
    async def story() -> None:
        psql = binaries.binaries_for(Area.at(data_dir), unprivileged()) / "psql"
        async with running(data_dir) as postgres:
            command = [psql, "-XAtc", "SELECT what FROM kept", postgres.url]
            assert (await asyncio.to_thread(subprocess.check_output, command, text=True)) == "before\n"

    run(story())


# Safe and private


def test_commits_are_durable_even_if_alter_system_turns_durability_off(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            for name in ("fsync", "full_page_writes", "synchronous_commit"):
                await ask(admin_url(postgres.url), f"ALTER SYSTEM SET {name} = off")
        async with running(data_dir) as postgres:
            for name in ("fsync", "full_page_writes", "synchronous_commit"):
                assert await ask(postgres.url, f"SHOW {name}") == "on"

    run(story())


@pytest.mark.parametrize("name", ["fsync", "listen_addresses", "hba_file"])
def test_settings_that_keep_data_safe_and_private_cannot_be_changed(data_dir: Path, name: str) -> None:
    async def story() -> None:
        with pytest.raises(EmbeddedError, match=f"does not let {name} be changed"):
            await EmbeddedPostgres(EmbeddedSettings(data_dir, extra={name: "off"})).start()

    run(story())


def test_no_tcp_port_is_open(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            assert not psutil.Process(postgres.pid).net_connections(kind="inet")
            assert await ask(postgres.url, "SHOW listen_addresses") == ""

    run(story())


def test_only_the_owner_can_reach_the_data_and_the_socket(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            owner = psutil.Process(postgres.pid).uids().effective
            assert owner != 0
            for path in (data_dir / "socket", data_dir / "pgdata"):
                assert stat.S_IMODE(path.stat().st_mode) == 0o700
                assert path.stat().st_uid == owner
            assert stat.S_IMODE((data_dir / "socket" / ".s.PGSQL.5432").stat().st_mode) == 0o700
            assert stat.S_IMODE(postgres.log_path.stat().st_mode) == 0o600

    run(story())


def test_the_server_sees_neither_our_terminal_nor_our_secrets(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            assert postgres.pid
            assert os.getsid(postgres.pid) != os.getsid(0)
            assert "HORAI_SECRET" not in psutil.Process(postgres.pid).environ()

    monkeypatch.setenv("HORAI_SECRET", "a key")
    run(story())


def test_a_symlink_in_the_place_of_the_short_socket_directory_is_refused(place: Path, template: Path) -> None:
    async def story() -> None:
        data_dir = copied(template, place / ("long-" * 20))
        squatted = choose_directory(Area.at(data_dir), 5432)
        squatted.symlink_to(place)
        try:
            with pytest.raises(DirectoryNotOurs, match="is a symlink or belongs to another user"):
                await EmbeddedPostgres(EmbeddedSettings(data_dir)).start()
        finally:
            squatted.unlink()

    run(story())


@as_root
def test_a_stranger_in_the_place_of_the_short_socket_directory_is_refused(place: Path, template: Path) -> None:
    async def story() -> None:
        data_dir = copied(template, place / ("long-" * 20))
        squatted = choose_directory(Area.at(data_dir), 5432)
        squatted.mkdir()
        os.chown(squatted, 54321, 54321)
        try:
            with pytest.raises(DirectoryNotOurs, match="is a symlink or belongs to another user"):
                await EmbeddedPostgres(EmbeddedSettings(data_dir)).start()
        finally:
            squatted.rmdir()

    run(story())


# What it says


def test_statements_can_be_counted_by_application_in_the_log(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir, extra={"log_statement": "all"}) as postgres:
            await ask(postgres.url, "SELECT 'counted'")
            lines = postgres.log_path.read_text().splitlines()
            assert sum(" tester LOG:  " in line and "SELECT 'counted'" in line for line in lines) == 1

    run(story())


def test_a_large_log_is_moved_aside_under_the_running_server(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with running(data_dir, extra={"log_statement": "all"}) as postgres, watched(postgres):
            await ask(postgres.url, "SELECT 'early'")
            monkeypatch.setattr(server_log.is_large, "__defaults__", (100,))
            await until((data_dir / "server.log.1").exists)
            monkeypatch.setattr(server_log.is_large, "__defaults__", (server_log.LARGEST,))
            await ask(postgres.url, "SELECT 'late'")
            assert "SELECT 'late'" in postgres.log_path.read_text()
            assert b"\0" not in postgres.log_path.read_bytes()

    run(story())
    assert "SELECT 'early'" in (data_dir / "server.log.1").read_text()
