"""`horai migrate` and `horai db`: on a URL, on an embedded database that runs, and on one that does not."""

from pathlib import Path

import asyncpg
import pytest
from harness import HoraiProcess
from terminal import Terminal

from horai.embedded import NotRunning, url_of
from horai.embedded.admin import admin_url

STRAY = "insert into horai.event (tenant_id, kind, at) values (1, 'STRAY', '2100-01-01Z')"


def test_the_url_of_a_running_embedded_database_is_printed(alone: Terminal, server: HoraiProcess) -> None:
    ended = alone("db", "url", "--data-dir", str(server.data_dir))

    assert (ended.code, ended.out) == (0, url_of(server.data_dir) + "\n")


def test_the_url_of_the_superuser_is_printed_with_admin(alone: Terminal, server: HoraiProcess) -> None:
    ended = alone("db", "url", "--admin", "--data-dir", str(server.data_dir))

    assert (ended.code, ended.out) == (0, admin_url(url_of(server.data_dir)) + "\n")
    assert ended.out.startswith("postgresql://horai@/horai?host=/")


def test_an_embedded_database_cannot_have_a_single_role(alone: Terminal, server: HoraiProcess) -> None:
    for place in (("--data-dir", str(server.data_dir)), ("--database-url", url_of(server.data_dir))):
        assert alone("migrate", "--single-role", *place).failed_with(
            1,
            "error: The embedded database has the roles of row-level security.",
            "hint: Leave out --single-role, or give --database-url.",
        )


def test_a_directory_without_a_database_is_told_and_left_alone(alone: Terminal, tmp_path: Path) -> None:
    directory = tmp_path / "none"

    for command in (("db", "verify"), ("migrate", "--dry-run")):
        assert alone(*command, "--data-dir", str(directory)).failed_with(
            1, f"error: There is no database in {directory}.", "hint: horai up and horai migrate create one."
        )
    assert alone("db", "url", "--data-dir", str(directory)).code == 1
    assert not directory.exists()


def test_an_embedded_database_is_started_for_a_command_and_stopped_after(alone: Terminal, short_place: Path) -> None:
    directory = short_place / "migrated"
    there = {"HORAI_DATA_DIR": str(directory)}

    applied = alone("migrate", **there)
    verified = alone("db", "verify", "--json", **there)

    assert (applied.code, applied.out.splitlines()[0]) == (0, "applied 0001_skeleton")
    assert (verified.code, verified.json["holds"]) == (0, True)
    with pytest.raises(NotRunning):
        url_of(directory)


def test_a_migrated_database_needs_nothing_and_the_flag_beats_the_environment(alone: Terminal, url: str) -> None:
    elsewhere = {"DATABASE_URL": "postgresql://127.0.0.1:1/none"}

    done = alone("migrate", "--dry-run", "--database-url", url, **elsewhere)

    assert (done.code, done.out, done.err) == (0, "", "Nothing to do: the database is at this version.\n")


def test_the_invariants_of_a_running_server_hold(alone: Terminal, short_place: Path) -> None:
    """It is a server of its own: other tests write rows that never were into the shared one."""
    running = HoraiProcess(short_place / "verified").start()
    try:
        at_it = Terminal(HORAI_SERVER=running.base)
        assert at_it("jobs", "create", "once", "--url", f"{running.base}/livez", "--method", "GET").code == 0
        triggered = at_it("jobs", "trigger", "once", "--wait")
        verified = alone("db", "verify", "--data-dir", str(running.data_dir))
    finally:
        stopped = running.stop()

    assert triggered.code == 0, triggered.err
    assert stopped == 0
    assert verified.code == 0, verified.out
    assert verified.out.startswith("INVARIANT")


async def test_a_violation_is_shown_and_fails(alone: Terminal, url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(STRAY)
    await connection.close()

    verified = alone("db", "verify", "--json", DATABASE_URL=url)

    assert (verified.code, verified.err) == (1, "")
    broken = [finding for finding in verified.json["findings"] if finding["violations"]]
    assert [finding["violations"] for finding in broken] == [1]
    assert len(broken[0]["examples"]) == 1


async def test_a_database_that_was_never_migrated_is_told_apart_from_a_broken_one(alone: Terminal, url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("drop schema horai cascade")
    await connection.close()

    assert alone("db", "verify", "--database-url", url).err.splitlines()[-1] == "hint: horai migrate applies them."


def test_a_database_out_of_reach_is_told(alone: Terminal) -> None:
    refused = alone("migrate", "--database-url", "postgresql://127.0.0.1:1/none")

    assert (refused.code, refused.out) == (1, "")
    assert [line.split(":")[0] for line in refused.err.splitlines()] == ["error", "hint"]
