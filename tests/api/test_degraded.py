"""Why the scheduler is degraded although its loops run: a newer schema, or a database clock that was set back."""

from typing import Any

import harness
from harness import Client
from shifted_clock import SHIFTED

from api import given
from horai.db.migrate import newest_known
from horai.db.pool import Platform


async def _health(api: Client, status: str) -> Any:
    health = (await api("GET", "/api/v1/scheduler/health")).json
    return health if health["status"] == status else None


async def test_a_running_node_reports_a_schema_that_it_does_not_know(url: str, connection: Platform) -> None:
    async with harness.node(url) as api:
        assert (await given.until(lambda: _health(api, "UP")))["reasons"] == []
        newer = newest_known() + 1
        await connection.execute(
            "insert into horai.migration (number, name, checksum) values ($1, 'newer', 'x')", newer
        )

        (reason,) = (await given.until(lambda: _health(api, "DEGRADED")))["reasons"]
        assert reason["textSaid"]["code"] == "SCHEMA_NEWER"
        assert reason["textSaid"]["params"] == {"number": newer}
        assert reason["text"] == reason["textSaid"]["text"]
        ready = await api("GET", "/readyz")
        assert (ready.status, ready.json["status"]) == (200, "degraded"), (
            "it still serves: a deploy replaces node by node"
        )
        assert ready.json["reasons"] == [reason["text"]]

        await connection.execute("delete from horai.migration where number = $1", newer)
        assert (await given.until(lambda: _health(api, "UP")))["reasons"] == []
        assert (await api("GET", "/readyz")).json["status"] == "ready"


async def test_a_database_clock_that_was_set_back_is_reported_until_it_has_caught_up(
    url: str, connection: Platform
) -> None:
    await connection.execute(SHIFTED)
    async with harness.node(url) as api:
        await given.until(lambda: _health(api, "UP"))
        await connection.execute("update shifted.by set amount = '-10 min'")

        (reason,) = (await given.until(lambda: _health(api, "DEGRADED")))["reasons"]
        assert reason["textSaid"]["code"] == "CLOCK_BEHIND"
        assert 590 <= reason["textSaid"]["params"]["seconds"] <= 600
        ready = await api("GET", "/readyz")
        assert (ready.status, ready.json["status"]) == (503, "degraded")
        assert ready.json["reasons"]

        await connection.execute("update shifted.by set amount = '0'")
        await given.until(lambda: _health(api, "UP"))
        assert (await api("GET", "/readyz")).status == 200


async def test_a_node_that_starts_after_the_clock_was_set_back_reports_it_too(url: str, connection: Platform) -> None:
    await connection.execute(SHIFTED)
    async with harness.node(url):
        """It notes when it started, and when it stopped."""
    await connection.execute("update shifted.by set amount = '-10 min'")
    async with harness.node(url) as api:
        (reason,) = (await given.until(lambda: _health(api, "DEGRADED")))["reasons"]
        assert reason["textSaid"]["code"] == "CLOCK_BEHIND"
