"""Helpers for the examples on an empty machine: a temporary directory, and processes that end with the story."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

ROOT = Path(__file__).parents[1]
HORAI = str(Path(sys.executable).parent / "horai")


@contextmanager
def a_directory() -> Generator[Path]:
    """Make a temporary directory and remove it afterwards.

    Under root, PostgreSQL runs as another user, who must be able to enter the directory.
    """
    directory = Path(tempfile.mkdtemp(prefix="horai-example-"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def running(command: list[str], ready: str, environment: Mapping[str, str], log: Path) -> Generator[str]:
    """A process, and what it says after `ready`; ended by SIGTERM."""
    with log.open("a") as trouble:
        process = subprocess.Popen(  # noqa: S603 — ours
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=trouble, text=True
        )
    with process:
        try:
            said = next((line for line in process.stdout or () if line.startswith(ready)), None)
            if said is None:
                raise RuntimeError(f"{command} ended with {process.wait()}:\n{log.read_text()}")
            yield said.removeprefix(ready).strip()
        finally:
            process.terminate()


@contextmanager
def horai(directory: Path, *arguments: str) -> Generator[str]:
    """`horai up` with a database of its own, and its address."""
    command = [HORAI, "up", "--port", "0", "--data-dir", str(directory / "horai"), *arguments]
    with running(command, "Horai is ready: ", {}, directory / "horai.log") as address:
        yield address


def database_url(directory: Path, *flags: str) -> str:
    """Return the URL of the database that `horai up` has brought along."""
    command = [HORAI, "db", "url", "--data-dir", str(directory / "horai"), *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 — ours


async def beside(directory: Path, database: str) -> str:
    """Return the URL of another database on the same server, made if it is not there: the superuser makes databases."""
    url = urlsplit(database_url(directory))
    connection = await asyncpg.connect(database_url(directory, "--admin"))
    try:
        if not await connection.fetchval("select exists (select from pg_database where datname = $1)", database):
            await connection.execute(f"create database {database} owner {url.username}")
    finally:
        await connection.close()
    return urlunsplit(url._replace(path=f"/{database}"))


def perform(package: str) -> None:
    """Run Horai with a worker for the functions of an example, and tell its story with the seconds that have passed."""
    with a_directory() as directory, horai(directory, "--app", f"{package}.jobs:app") as address:
        print(f"Horai, with a worker for {package}: {address}", flush=True)
        os.environ["HORAI_DATABASE_URL"] = database_url(directory)
        asyncio.run(_told(package))


async def _told(package: str) -> None:
    """Tell the story. Its modules are imported here: not before the environment names the database."""
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - begun:6.2f} s  {line}", flush=True)

    async with import_module(f"{package}.jobs").app:
        await import_module(f"{package}.story").tell(say)
