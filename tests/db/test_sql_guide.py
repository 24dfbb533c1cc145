"""Run the SQL of docs/guides/sql.md, README.md and README.zh-CN.md, in order: each statement answers what its page says."""

import re
from pathlib import Path

import asyncpg
import make
import pytest

from horai.db.pool import Platform

ROOT = Path(__file__).parents[2]
BLOCKS = re.compile(r"```sql\n(.*?)```", re.DOTALL)
STATEMENT = re.compile(r"(?P<text>[^;]+);\n*(?:-- (?P<kind>answers|refused): (?P<said>.+)\n)?")


@pytest.mark.parametrize(("page", "least"), [("docs/guides/sql.md", 9), ("README.md", 2), ("README.zh-CN.md", 2)])
async def test_every_statement_answers_what_its_page_says(url: str, connection: Platform, page: str, least: int):
    async with make.scope(url) as scope:
        await make.job(scope)
    checked = 0
    for statement in STATEMENT.finditer("\n".join(BLOCKS.findall((ROOT / page).read_text()))):
        said = statement["said"]
        if statement["kind"] == "refused":
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.fetch(statement["text"])
            assert refused.value.sqlstate == said, statement["text"]
        else:
            rows = await connection.fetch(statement["text"])
            assert said is None or ", ".join(str(row[0]) for row in rows) == said, statement["text"]
        checked += said is not None
    if await connection.fetchval("select count(*) from pg_roles where rolname = 'article_service'"):
        await connection.execute("drop owned by article_service; drop role article_service")

    assert checked >= least
