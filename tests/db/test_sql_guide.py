"""docs/guides/sql.md: every statement is run, in its order, and answers what the page says."""

import re
from pathlib import Path

import asyncpg
import pytest

import make
from horai.db.pool import Dedicated

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "sql.md").read_text()
BLOCKS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
STATEMENT = re.compile(r"(?P<text>[^;]+);\n*(?:-- (?P<kind>answers|refused): (?P<said>.+)\n)?")


async def test_every_statement_of_the_guide_answers_what_it_says(url: str, connection: Dedicated):
    async with make.scope(url) as scope:
        await make.job(scope)
    checked = 0
    for statement in STATEMENT.finditer("\n".join(BLOCKS)):
        said = statement["said"]
        if statement["kind"] == "refused":
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.fetch(statement["text"])
            assert refused.value.sqlstate == said, statement["text"]
        else:
            rows = await connection.fetch(statement["text"])
            assert said is None or ", ".join(str(row[0]) for row in rows) == said, statement["text"]
        checked += said is not None
    await connection.execute("drop owned by article_service; drop role article_service")

    assert checked > 8
