"""Servers of the embedded PostgreSQL for tests: started, watched, asked, and ended with their place."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.account import Account, account_for
from horai.embedded.postmaster import is_postmaster_of, read_pid_file

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
    """Not tmp_path: as root that is 0700, and PostgreSQL runs as a user that cannot enter it."""
    place = Path(tempfile.mkdtemp(prefix="horai-test-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        end_what_still_runs(place)
        shutil.rmtree(place)


def copied(template: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", template, to], check=True)
    return to
