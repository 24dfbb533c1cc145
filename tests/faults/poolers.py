"""A real pgbouncer in front of a database, as operators put it there."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import create_server
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from sizes import IS_LONG

from faults.outside import until
from horai.embedded.account import account_for

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
MISSING = "pgbouncer is not installed: apt-get install pgbouncer"


def require_pgbouncer() -> str:
    """Return the path of pgbouncer; without it the test is skipped, and in the long form it fails."""
    if PROGRAM is None:
        pytest.fail(MISSING) if IS_LONG else pytest.skip(MISSING)
    return PROGRAM


@asynccontextmanager
async def pgbouncer(
    place: Path, url: str, mode: Literal["session", "transaction"], **settings: object
) -> AsyncGenerator[str]:
    """The URL of a pgbouncer for the database of `url`."""
    program, account = require_pgbouncer(), account_for()
    home = place / f"bouncer-{os.urandom(3).hex()}"
    home.mkdir(mode=0o755)
    with create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    parts = urlsplit(url)
    server, database = parse_qs(parts.query), parts.path.lstrip("/")
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "auth_type": "any",
        "pool_mode": mode,
        "unix_socket_dir": "",
        "default_pool_size": 60,
        "max_client_conn": 500,
        **settings,
    }
    target = f"{database} = host={server['host'][0]} port={server['port'][0]} dbname={database} user={parts.username}"
    written = [f"{name} = {value}" for name, value in lines.items()]
    config = home / "pgbouncer.ini"
    config.write_text("\n".join(["[databases]", target, "[pgbouncer]", *written]) + "\n")
    config.chmod(0o644)
    with (home / "log").open("wb") as log:
        process = account.spawn([program, config], log)
    found = f"postgresql://{parts.username}@127.0.0.1:{port}/{database}?sslmode=disable"

    async def answers() -> bool:
        with suppress(OSError, asyncpg.PostgresError):
            await (await asyncpg.connect(found, statement_cache_size=0)).close()
            return True
        return False

    try:
        await until(answers, 10, "pgbouncer answers")
        yield found
    except BaseException:
        print((home / "log").read_text()[-3_000:])
        raise
    finally:
        process.terminate()
        await asyncio.to_thread(_ended, process)


def _ended(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
