"""One PostgreSQL for all that is compared, and a fresh, migrated database for each sample."""

import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from horai.core.settings import EngineSettings
from horai.db.pool import opened
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.admin import admin_url
from horai.process import prepare

SHARED_BUFFERS = "512MB"
TEMPLATE = "bench_template"


@dataclass(frozen=True, slots=True)
class Size:
    """The amount to measure: `rows` of a backlog, `seconds` of a steady load, `quick` for a first impression.

    The files of the server lie below `place`: on a disk, unless the figures do not matter.
    """

    rows: int = 200_000
    seconds: float = 20.0
    quick: bool = False
    place: str = "/var/tmp"

    def wait(self, full: float, quick: float) -> float:
        """Return the seconds of a wait around the load: `quick` in a first impression, and then at most those of the load."""
        return min(quick, self.seconds) if self.quick else full


@dataclass(frozen=True, slots=True)
class Sitting:
    """A running server and the size of what is measured on it."""

    server: EmbeddedPostgres
    size: Size = field(default_factory=Size)

    def url_of(self, database: str) -> str:
        """Another database of the same server."""
        return admin_url(self.server.url).replace("/horai?", f"/{database}?")

    @asynccontextmanager
    async def database(self, name: str, *, is_empty: bool = False, template: str = TEMPLATE) -> AsyncGenerator[str]:
        """The URL of a new database with the schema (or with nothing), dropped afterwards."""
        await self.admin(f'drop database if exists "bench_{name}" with (force)')
        copied = "" if template == TEMPLATE else " strategy file_copy"  # a large one is not written to the log again
        await self.admin(f'create database "bench_{name}" template {"template0" if is_empty else template}{copied}')
        try:
            yield self.url_of(f"bench_{name}")
        finally:
            await self.admin(f'drop database "bench_{name}" with (force)')

    async def admin(self, statement: str) -> None:
        """Runs one statement on the server's own database."""
        async with opened(admin_url(self.server.url), "bench admin") as connection:
            await connection.execute(statement)


@asynccontextmanager
async def sit_down(size: Size, extra: Mapping[str, str] | None = None) -> AsyncGenerator[Sitting]:
    """A server of its own, fsync on, with a migrated template database."""
    place = Path(tempfile.mkdtemp(prefix="horai-bench-", dir=size.place))
    place.chmod(0o755)
    settings = EmbeddedSettings(place / "data", shared_buffers=SHARED_BUFFERS, max_connections=200, extra=extra or {})
    server = EmbeddedPostgres(settings)
    await server.start()
    sitting = Sitting(server, size)
    try:
        await sitting.admin(f"create database {TEMPLATE}")
        await prepare(sitting.url_of(TEMPLATE), EngineSettings())
        yield sitting
    finally:
        await server.stop()
        shutil.rmtree(place, ignore_errors=True)
