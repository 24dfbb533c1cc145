"""Redis, the store of peers that have none in PostgreSQL: the program of the Debian package `redis-server`."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

PROGRAM = "redis-server"
START_WITHIN = 10.0


def is_there() -> bool:
    """Return whether the program is installed."""
    return shutil.which(PROGRAM) is not None


@asynccontextmanager
async def running(place: str) -> AsyncGenerator[str]:
    """The URL of a new server that writes its log to disk once a second, as its own documentation advises."""
    directory = Path(tempfile.mkdtemp(prefix="horai-redis-", dir=place))
    socket = directory / "socket"
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "--port", "0", "--unixsocket", str(socket), "--dir", str(directory)),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--loglevel", "warning"),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(START_WITHIN):
            while not socket.exists():
                await asyncio.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(directory, ignore_errors=True)
