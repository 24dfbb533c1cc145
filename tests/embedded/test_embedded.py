"""The embedded PostgreSQL, with real processes: what it promises when all is well, and when something dies."""

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest
from structlog.testing import capture_logs

from horai.embedded import (
    DatabaseStartFailed,
    DirectoryInUse,
    DirectoryNotOurs,
    EmbeddedError,
    EmbeddedPostgres,
    EmbeddedSettings,
    NotRunning,
    NotShipped,
    OtherMajorVersion,
    Unreachable,
    binaries,
    cluster,
    default_data_dir,
    server_log,
    url_of,
)
from horai.embedded.account import Account, account_for
from horai.embedded.area import Area
from horai.embedded.postmaster import is_postmaster_of, read_pid_file, shut_down
from horai.embedded.sockets import choose_directory
from horai.embedded.supervisor import pause_before

IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="needs root")

SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from horai.embedded import EmbeddedPostgres, EmbeddedSettings

async def main():
    postgres = EmbeddedPostgres(EmbeddedSettings(Path(sys.argv[1])))
    await postgres.start()
    print(f"pid={postgres.pid}", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""

ORDINARY_USER = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import asyncpg, concurrent.futures.thread, encodings.idna
from horai.embedded import EmbeddedPostgres, EmbeddedSettings, url_of

if os.geteuid() == 0:  # the interpreter itself may lie where that user cannot go, so it is loaded before
    os.setgroups([])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[3]))
os.environ["HOME"] = "/"

async def main():
    postgres = EmbeddedPostgres(EmbeddedSettings(Path(sys.argv[1])))
    await postgres.start()
    connection = await asyncpg.connect(url_of(Path(sys.argv[1])))
    print("answer=%d" % await connection.fetchval("SELECT 6 * 7"))
    print("owner=%d" % os.stat(f"/proc/{postgres.pid}").st_uid)
    await connection.close()
    await postgres.stop()

asyncio.run(main())
"""


def run(story: Coroutine[Any, Any, None]) -> None:
    async def told() -> None:
        async with asyncio.timeout(60):
            await story

    asyncio.run(told())


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited for nothing"
        time.sleep(0.005)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(data_dir: Path, **settings: Any) -> AsyncGenerator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(EmbeddedSettings(data_dir, **settings))
    await postgres.start()
    try:
        yield postgres
    finally:
        await postgres.stop()


@asynccontextmanager
async def watched(postgres: EmbeddedPostgres) -> AsyncGenerator[None]:
    watch = asyncio.create_task(postgres.watch())
    try:
        yield
    finally:
        assert not watch.done()
        watch.cancel()
        await asyncio.wait([watch])


@contextmanager
def other_horai(data_dir: Path) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", SUPERVISOR, data_dir], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def postmaster_of(other: subprocess.Popen[str]) -> int:
    assert other.stdout
    return next(int(line.removeprefix("pid=")) for line in other.stdout if line.startswith("pid="))


async def ask(url: str, sql: str) -> Any:
    connection = await asyncpg.connect(url, timeout=10, server_settings={"application_name": "tester"})
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def unprivileged() -> Account:
    if not IS_ROOT:
        return account_for(Path("/nonexistent"))
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid, "nobody")


def end_what_still_runs(place: Path) -> None:
    for pid_file in place.rglob("postmaster.pid"):
        found = read_pid_file(pid_file.parent)
        if found and is_postmaster_of(found.pid, pid_file.parent):
            os.kill(found.pid, signal.SIGQUIT)
            wait_until(lambda gone=found.pid, home=pid_file.parent: not is_postmaster_of(gone, home))


@contextmanager
def short_lived_place() -> Generator[Path]:
    """Not tmp_path: as root that is 0700, and PostgreSQL runs as somebody who cannot enter it."""
    place = Path(tempfile.mkdtemp(prefix="horai-test-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        end_what_still_runs(place)
        shutil.rmtree(place)


@pytest.fixture
def place() -> Iterator[Path]:
    with short_lived_place() as made:
        yield made


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A data directory as a stopped server leaves it; copying it is cheaper than initdb."""

    async def story() -> None:
        async with running(made / "data") as postgres:
            await ask(postgres.url, "CREATE TABLE kept AS SELECT 'before' AS what")

    with short_lived_place() as made:
        run(story())
        yield made / "data"


@pytest.fixture
def data_dir(place: Path, template: Path) -> Path:
    return copied(template, place / "data")


def copied(template: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", template, to], check=True)
    return to


# When all is well


def test_the_first_start_makes_a_utf8_database_named_horai_in_the_c_locale(place: Path) -> None:
    async def story() -> None:
        async with running(place / "new" / "data") as postgres:
            assert await ask(postgres.url, "SELECT current_database() || ' ' || current_user") == "horai horai"
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


def test_commits_are_durable_whatever_the_files_say(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            for name in ("fsync", "full_page_writes", "synchronous_commit"):
                await ask(postgres.url, f"ALTER SYSTEM SET {name} = off")
        async with running(data_dir) as postgres:
            for name in ("fsync", "full_page_writes", "synchronous_commit"):
                assert await ask(postgres.url, f"SHOW {name}") == "on"

    run(story())


@pytest.mark.parametrize("name", ["fsync", "listen_addresses", "hba_file"])
def test_what_keeps_data_safe_and_private_cannot_be_changed(data_dir: Path, name: str) -> None:
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
            with pytest.raises(DirectoryNotOurs, match="is a symlink or belongs to somebody else"):
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
            with pytest.raises(DirectoryNotOurs, match="is a symlink or belongs to somebody else"):
                await EmbeddedPostgres(EmbeddedSettings(data_dir)).start()
        finally:
            squatted.rmdir()

    run(story())


# When something dies


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


def test_what_was_stopped_is_not_started_again(data_dir: Path) -> None:
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


# What is refused, and how


def test_a_directory_in_use_by_another_horai_is_refused_by_its_process(data_dir: Path) -> None:
    async def story(other: int, postmaster: int) -> None:
        with pytest.raises(DirectoryInUse, match=rf"in use by another Horai \(process {other}\)"):
            await EmbeddedPostgres(EmbeddedSettings(data_dir)).start()
        assert is_postmaster_of(postmaster, data_dir / "pgdata")
        assert await ask(url_of(data_dir), "SELECT what FROM kept") == "before"

    with other_horai(data_dir) as other:
        run(story(other.pid, postmaster_of(other)))


def test_data_of_another_major_version_is_refused_untouched(data_dir: Path) -> None:
    async def story() -> None:
        with pytest.raises(
            OtherMajorVersion, match="made by PostgreSQL 16; this Horai carries PostgreSQL 18"
        ) as refusal:
            await EmbeddedPostgres(EmbeddedSettings(data_dir)).start()
        assert "pg_dump" in (refusal.value.hint or "")
        assert "--data-dir" in (refusal.value.hint or "")

    (data_dir / "pgdata" / "PG_VERSION").write_text("16\n")
    run(story())


@pytest.mark.parametrize(("mode", "gid"), [(0o777, None), (0o757, None), (0o770, 54321)])
@as_root
def test_a_directory_that_other_users_can_write_to_is_refused(place: Path, mode: int, gid: int | None) -> None:
    async def story() -> None:
        with pytest.raises(DirectoryNotOurs, match="Other users can write") as refused:
            await EmbeddedPostgres(EmbeddedSettings(place / "shared")).start()
        assert "chmod go-w" in (refused.value.hint or "")

    (place / "shared").mkdir()
    if gid is not None:
        os.chown(place / "shared", -1, gid)
    (place / "shared").chmod(mode | 0o005)
    run(story())
    assert list((place / "shared").iterdir()) == []


@as_root
def test_a_directory_of_another_user_than_ours_and_postgresqls_is_refused(place: Path) -> None:
    (place / "theirs").mkdir(mode=0o755)
    os.chown(place / "theirs", 54321, 54321)
    with pytest.raises(DirectoryNotOurs, match="belongs to another user"):
        Area.at(place / "theirs").make(Account(os.geteuid(), os.getegid(), "root"))


@pytest.mark.parametrize(
    ("name", "complaint"), [("thesis.txt", "was not made by Horai"), ("PG_VERSION", "that Horai did not make")]
)
def test_a_directory_with_something_else_in_it_is_refused_untouched(place: Path, name: str, complaint: str) -> None:
    async def story() -> None:
        with pytest.raises(DirectoryNotOurs, match=complaint):
            await EmbeddedPostgres(EmbeddedSettings(place)).start()

    (place / name).write_text("18\n")
    run(story())
    assert [path.name for path in place.iterdir()] == [name]


def test_a_file_in_the_place_of_the_directory_is_refused(place: Path) -> None:
    async def story(data_dir: Path) -> None:
        with pytest.raises(EmbeddedError, match=r"not a directory|Not a directory"):
            await EmbeddedPostgres(EmbeddedSettings(data_dir)).start()

    (place / "file").touch()
    run(story(place / "file"))
    run(story(place / "file" / "below"))


def test_a_cluster_without_a_version_is_refused(data_dir: Path) -> None:
    (data_dir / "pgdata" / "PG_VERSION").unlink()
    with pytest.raises(DirectoryNotOurs, match="not a PostgreSQL data directory"):
        cluster.check_cluster(data_dir / "pgdata", account_for(data_dir / "pgdata"))


def test_a_start_that_fails_ends_with_the_last_lines_of_the_server(data_dir: Path) -> None:
    async def story() -> None:
        with pytest.raises(
            DatabaseStartFailed, match='invalid value for parameter "shared_buffers": "plenty"'
        ) as failure:
            await EmbeddedPostgres(EmbeddedSettings(data_dir, shared_buffers="plenty")).start()
        assert "server.log" in (failure.value.hint or "")
        async with running(data_dir):
            pass

    run(story())


def test_a_platform_without_binaries_is_asked_for_a_database_url(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        with pytest.raises(NotShipped, match="no embedded PostgreSQL 18 for this platform") as refusal:
            await EmbeddedPostgres(EmbeddedSettings(place / "data")).start()
        assert "--database-url" in (refusal.value.hint or "")

    monkeypatch.setattr(binaries, "find_spec", lambda _name: None)
    run(story())


# Whoever runs it


def test_an_ordinary_user_runs_it_as_itself(place: Path) -> None:
    user = unprivileged()
    home = place / "home"
    home.mkdir()
    wheel = binaries._copy(binaries._site_packages(), Area.at(place))
    (wheel / binaries.PACKAGE / "__init__.py").touch()
    if IS_ROOT:
        os.chown(home, user.uid, user.gid)
    command = [sys.executable, "-c", ORDINARY_USER, home / "data", wheel, str(user.uid), str(user.gid)]

    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert said.returncode == 0, said.stderr
    assert "answer=42" in said.stdout
    assert f"owner={user.uid}" in said.stdout
    assert stat.S_IMODE((home / "data").stat().st_mode) == 0o700


@as_root
def test_root_runs_the_data_of_an_ordinary_user_as_that_user(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            assert psutil.Process(postgres.pid).uids().real == user.uid
            assert await ask(postgres.url, "SELECT what FROM kept") == "before"

    user = unprivileged()
    subprocess.run(["chown", "-R", f"{user.uid}:{user.gid}", data_dir], check=True)
    run(story())


@as_root
def test_a_user_id_without_a_name_is_told_what_initdb_needs(place: Path) -> None:
    async def story() -> None:
        with pytest.raises(DatabaseStartFailed, match="needs a name for the user id 54321"):
            await EmbeddedPostgres(EmbeddedSettings(data_dir)).start()

    data_dir = place / "data"
    data_dir.mkdir()
    os.chown(data_dir, 54321, 54321)
    run(story())


@as_root
def test_root_is_told_when_the_user_cannot_enter_and_no_parent_is_changed(place: Path) -> None:
    async def story() -> None:
        with pytest.raises(Unreachable, match=f"cannot enter {closed}") as refusal:
            await EmbeddedPostgres(EmbeddedSettings(closed / "below" / "data")).start()
        assert "/var/lib/horai" in (refusal.value.hint or "")

    closed = place / "closed"
    closed.mkdir(mode=0o700)
    run(story())
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert not list(closed.iterdir())


@as_root
def test_binaries_that_the_user_cannot_run_are_copied_once(
    data_dir: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        for _ in range(2):
            async with running(data_dir) as postgres:
                assert Path(psutil.Process(postgres.pid).exe()).is_relative_to(data_dir)
                assert await ask(postgres.url, "SELECT what FROM kept") == "before"

    hidden = binaries._copy(binaries._site_packages(), Area.at(place))
    hidden.chmod(0o700)
    monkeypatch.setattr(binaries, "_site_packages", lambda: hidden)
    run(story())
    assert len(list(data_dir.glob("binaries-*"))) == 1
    assert stat.S_IMODE(hidden.stat().st_mode) == 0o700


def test_the_default_place_is_one_that_works_for_whoever_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/home/ada/data")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_data_dir() == Path("/home/ada/data/horai")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/horai")


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
