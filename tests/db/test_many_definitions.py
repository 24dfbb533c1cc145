"""Very many definitions: the trigger finds the coming fires in an index, however many others there are (C10).

The long form has the three million definitions of the seed.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import make
import pytest
from benchmarks.cron_definitions import make_definitions
from databases import superuser
from sizes import IS_LONG

from horai.core.limits import SHARDS
from horai.core.timing import Rhythm
from horai.db import schedules
from horai.db.catalog import sql
from horai.db.pool import Dedicated
from horai.engine.trigger import FILL_LIMIT
from horai.time.schedule import next_after

DEFINITIONS = 3_000_000 if IS_LONG else 30_000
COMING = 500
PAGES = 20
"""Pages that the question may read: those of 500 entries, and the way to them."""
HORIZON = timedelta(minutes=1)
SOON = """
update horai.schedule set fire_time = clock_timestamp() + interval '1 minute' * random()
where id in (select 1 + n * $1::bigint / $2 from generate_series(0::bigint, $2::bigint - 1) n)
"""


async def plan_of(connection: Dedicated, *, is_generic: bool) -> dict[str, Any]:
    """Run the question of the trigger, planned for its arguments or for any; return the node that reads the table."""
    mode = "force_generic_plan" if is_generic else "force_custom_plan"
    await connection.execute(f"set plan_cache_mode = {mode}")
    given = (datetime.now(UTC) + HORIZON, FILL_LIMIT, list(range(SHARDS)), SHARDS)
    answer = await connection.fetchval(f"explain (format json, analyze, buffers) {sql('coming_schedules')}", *given)
    top = json.loads(answer)[0]["Plan"]
    assert top["Node Type"] == "Limit"
    (reader,) = top["Plans"]
    return reader


@pytest.mark.timeout(3_000 if IS_LONG else 120)
async def test_C10b_the_query_for_the_next_fires_reads_an_index_only(url: str) -> None:
    connection = await superuser(url)
    await make_definitions(url, connection, DEFINITIONS)
    await connection.execute(SOON, DEFINITIONS, COMING)
    await connection.execute("vacuum (analyze) horai.schedule", timeout=600)
    assert await connection.fetchval("select count(*) from horai.schedule") == DEFINITIONS

    for is_generic in (False, True):
        reader = await plan_of(connection, is_generic=is_generic)

        assert (reader["Node Type"], reader["Index Name"]) == ("Index Only Scan", "schedule_coming")
        assert (reader["Heap Fetches"], reader["Actual Rows"]) == (0, COMING)
        assert reader["Shared Hit Blocks"] + reader["Shared Read Blocks"] <= PAGES
    found = await schedules.coming_schedules(connection, datetime.now(UTC) + HORIZON, FILL_LIMIT)
    assert len(found) == COMING
    await connection.close()


async def test_a_loaded_definition_is_what_the_api_would_have_written(url: str) -> None:
    connection = await superuser(url)
    await make_definitions(url, connection, 100_000)
    number = 98_765
    loaded = await connection.fetchrow("select * from horai.job where name = $1", f"definition-{number}")
    assert loaded is not None
    document = json.loads(loaded["definition"])
    asked = {name: document[name] for name in ("cron", "queue", "target")}

    async with make.scope(url) as scope:
        await make.job(scope, "by-api", **asked)

    own = await connection.fetchrow("select * from horai.job where name = 'by-api'")
    assert own is not None
    assert own["schedule_id"] == loaded["schedule_id"], "the identity is the same"
    assert json.loads(own["definition"]) == {**document, "name": "by-api"}
    of_its_own = {"id", "name", "definition", "active_from", "created_at", "updated_at"}
    assert _without(own, of_its_own) == _without(loaded, of_its_own)
    schedule = await connection.fetchrow("select * from horai.schedule where id = $1", loaded["schedule_id"])
    assert schedule is not None
    rhythm = Rhythm.from_spec(json.loads(schedule["spec"]))
    assert rhythm.identity == schedule["identity"]
    assert next_after(rhythm.schedule, schedule["passed"]) == schedule["fire_time"]
    assert schedule["passed"].replace(tzinfo=None) == schedule["wall"]
    await connection.close()


def _without(row: asyncpg.Record, names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
