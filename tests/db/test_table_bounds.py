"""The tables of the schema: each is in one row of the guide, with what bounds it."""

import re
from pathlib import Path

from horai.db.pool import Platform

GUIDE = Path(__file__).parents[2] / "docs/guides/retention.md"
TABLES = "select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and not relispartition"


def listed() -> list[str]:
    """The tables in the first column of the last table of the guide."""
    section = GUIDE.read_text("utf-8").partition("\n## Tables\n")[2]
    return [
        name for row in section.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    ]


async def test_every_table_of_the_schema_has_a_bound_in_the_guide(connection: Platform) -> None:
    known = listed()
    assert len(known) == len(set(known)), "a table is listed twice"
    assert set(known) == {row["relname"] for row in await connection.fetch(TABLES)}
