"""The embedded PostgreSQL when something dies: the server, its supervisor, or a start half-way."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from embedded_servers import ask, other_horai, postmaster_of, run, running, until, wait_until, watched
from structlog.testing import capture_logs

from horai.embedded import EmbeddedPostgres, EmbeddedSettings, NotRunning, url_of
from horai.embedded.account import account_for
from horai.embedded.postmaster import is_postmaster_of, shut_down
from horai.embedded.supervisor import pause_before


def test_a_killed_postmaster_is_started_again(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres, watched(postgres):
            client = await asyncpg.connect(postgres.url)  # its backend outlives the postmaster for a moment
            await client.execute("INSERT INTO kept VALUES ('acknowledged')")
            killed = postgres.pid
            assert killed
            os.kill(killed, signal.SIGKILL)
            with capture_logs() as said:
                await until(lambda: any(entry["event"].endswith("was started again.") for entry in said))
            client.terminate()
            assert postgres.pid not in {None, killed}
            assert await ask(postgres.url, "SELECT count(*) FROM kept WHERE what = 'acknowledged'") == 1
            assert said[0]["event"] == "The embedded PostgreSQL is down."
            assert said[0]["exit_code"] == -signal.SIGKILL

    run(story())


def test_a_watch_never_gives_up_and_never_puts_an_empty_database_in_place_of_vanished_data(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres, watched(postgres):
            (data_dir / "pgdata").rename(data_dir / "elsewhere")
            assert postgres.pid
            with capture_logs() as said:
                os.kill(postgres.pid, signal.SIGKILL)
                await until(lambda: sum(entry["event"].endswith("did not start again.") for entry in said) >= 3)
                assert not (data_dir / "pgdata").exists()
                (data_dir / "elsewhere").rename(data_dir / "pgdata")
                await until(lambda: any(entry["event"].endswith("was started again.") for entry in said))
            assert await ask(postgres.url, "SELECT what FROM kept") == "before"

    run(story())


def test_the_pause_before_a_restart_grows_to_ten_seconds() -> None:
    assert [pause_before(restart) for restart in (1, 2, 3, 4, 100, 10_000)] == [0.1, 0.2, 0.4, 0.8, 10.0, 10.0]


def test_a_stopped_postgres_is_not_restarted_by_its_watcher(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as first, watched(first):
            assert first.pid
            os.kill(first.pid, signal.SIGKILL)
            await first.stop()
            async with running(data_dir) as second, watched(second):
                assert second.pid
                os.kill(second.pid, signal.SIGKILL)
                with capture_logs() as said:
                    await until(lambda: any(entry["event"].endswith("was started again.") for entry in said))
                assert first.pid is None

    run(story())


def test_a_postmaster_whose_supervisor_was_killed_is_stopped_at_the_next_start(data_dir: Path) -> None:
    async def story(leftover: int) -> None:
        with capture_logs() as said:
            async with running(data_dir) as postgres:
                assert postgres.pid != leftover
                assert not is_postmaster_of(leftover, data_dir / "pgdata")
                assert await ask(postgres.url, "SELECT what FROM kept") == "before"
        assert {"event": "Stopped a PostgreSQL whose Horai had died.", "pid": leftover}.items() <= said[0].items()

    with other_horai(data_dir) as other:
        leftover = postmaster_of(other)
        other.kill()
        other.wait()
    assert is_postmaster_of(leftover, data_dir / "pgdata")
    run(story(leftover))


def test_a_stale_pid_file_is_no_obstacle_even_when_its_number_is_in_use_again(data_dir: Path) -> None:
    async def story() -> None:
        pid_file = data_dir / "pgdata" / "postmaster.pid"
        lock_file = data_dir / "socket" / ".s.PGSQL.5432.lock"
        async with running(data_dir) as postgres:
            written = pid_file.read_text()
            account = account_for(data_dir / "pgdata")
            lock_text = lock_file.read_text()
            assert written.startswith(f"{postgres.pid}\n")
        with Path(os.devnull).open("wb") as nowhere:
            stranger = account.spawn(["/bin/sleep", "60"], nowhere)
        try:
            for file, text in ((pid_file, written), (lock_file, lock_text)):
                file.write_text(f"{stranger.pid}\n{text.partition(chr(10))[2]}")
                os.chown(file, account.uid, account.gid)
            with pytest.raises(NotRunning):
                url_of(data_dir)
            async with running(data_dir) as postgres:
                assert await ask(postgres.url, "SELECT what FROM kept") == "before"
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()

    run(story())


def test_an_initdb_killed_in_the_middle_is_done_again(place: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            assert await ask(postgres.url, "SELECT 1") == 1
        assert not list(data_dir.glob("pgdata.new-*"))

    data_dir = place / "data"
    with other_horai(data_dir) as other:
        wait_until(lambda: list(data_dir.glob("pgdata.new-*/base")))
        other.kill()
        other.wait()
    assert not (data_dir / "pgdata").exists()
    run(story())


def test_a_cancelled_start_leaves_nothing_running_and_nothing_locked(data_dir: Path) -> None:
    async def story() -> None:
        postgres = EmbeddedPostgres(EmbeddedSettings(data_dir))
        start = asyncio.create_task(postgres.start())
        await until(lambda: postgres.pid)
        start.cancel()
        with suppress(asyncio.CancelledError):
            await start
        assert start.cancelled()
        assert postgres.pid is None
        async with running(data_dir):
            pass

    run(story())


DEAF = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGQUIT, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(0.5)
signal.signal(signal.SIGINT, signal.SIG_DFL)
time.sleep(60)
"""


def test_a_server_deaf_to_the_first_signal_is_asked_again() -> None:
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        run(shut_down(deaf.pid, lambda: deaf.poll() is not None, timedelta(seconds=20)))
        assert deaf.returncode == -signal.SIGINT
