"""A preview promises the times that `next` returns and that fire: over changes of the clock, by every policy."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import Client
from sizes import IS_LONG

from horai import Horai, node
from horai.api.context import Context
from horai.core.health import EngineHealth
from horai.core.settings import ServerAccess
from horai.db.pool import close_pool, open_pool
from horai.db.wakeups import Wakeups
from horai.engine_node import NodeSettings
from horai.sdk.client import TENANT, process_scope

SPAN = timedelta(days=3)
FIXED = ["30 2 * * *", "15,30,45 1,2 * * *", "0 0 1,2,3 * * ?"]
WILDCARD = ["*/15 0-4 * * *", "20 * * * *"]
POLICIES = [{"gap": gap, "overlap": overlap} for gap, overlap in product(("shift", "skip"), ("first", "last", "both"))]
CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 28, 0, 0, 30, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 24, 0, 0, 30, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 7, 0, 0, 30, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 10, 31, 0, 0, 30, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 3, 12, 0, 30, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 2, 12, 0, 30, tzinfo=UTC)),
]


def wishes(zone: str, start: datetime) -> list[dict[str, Any]]:
    """Every cron by every policy, on all dates and on all but the one of the change; and an interval."""
    on_the_day = f"{start + timedelta(days=1):%m-%d}"
    fixed = [{"cron": cron, "timezone": zone, "dst": dst} for cron, dst in product(FIXED, POLICIES)]
    wild = [{"cron": cron, "timezone": zone} for cron in WILDCARD]
    excluded = [{"cron": cron, "timezone": zone, "calendar": [on_the_day]} for cron in (*FIXED, *WILDCARD)]
    return [*fixed, *wild, *excluded, {"every": "8h", "timezone": zone, "calendar": [on_the_day]}]


@asynccontextmanager
async def rest(url: str) -> AsyncGenerator[Client]:
    """The REST surface alone, over a database whose time stands still."""
    async with AsyncExitStack() as stack:
        pool = await open_pool(url, "horai api", 2)
        stack.push_async_callback(close_pool, pool)
        listening = stack.enter_context(node._listen("127.0.0.1", 0))
        context = Context(pool, Wakeups(), EngineHealth(), (await process_scope(pool, Wakeups())).tenant_id, TENANT, ())
        await stack.enter_async_context(node._server(context, listening, NodeSettings(Path("/nonexistent"))))
        yield Client(node._address(listening, ServerAccess()), await stack.enter_async_context(aiohttp.ClientSession()))


async def told(api: Client, method: str, path: str, body: Any = None) -> dict[datetime, str | None]:
    """The fires, each with its note."""
    reply = await api(method, path, body)
    assert reply.status == 200, reply.json
    return {datetime.fromisoformat(fire["fireTime"]): fire["note"] for fire in reply.json["fires"]}


@pytest.mark.parametrize(("zone", "start"), CHANGES if IS_LONG else CHANGES[:3], ids=lambda value: str(value)[:16])
async def test_X15_a_preview_matches_the_upcoming_fires_and_the_actual_fires(
    zone: str, start: datetime, horai_harness: Callable[..., Any]
) -> None:
    app, end = Horai("almanac"), start + SPAN

    async def fire() -> None: ...

    jobs = [(wish, app.job(fire, name=f"job-{number}", **wish)) for number, wish in enumerate(wishes(zone, start))]
    async with horai_harness(app, start=start) as time:
        promised: dict[str, dict[datetime, str | None]] = {}
        async with rest(time.database_url) as api:
            for wish, job in jobs:
                bounded = {**wish, "from": start.isoformat(), "endAt": end.isoformat(), "count": 200}
                promised[job.name] = await told(api, "POST", "/api/v1/schedules/preview", bounded)
                coming = await told(api, "GET", f"/api/v1/jobs/{job.name}/next?count=200")
                declared = {fire.fire_time: fire.note for fire in await job.next(200)}
                for also in (coming, declared):
                    assert {at: note for at, note in also.items() if at <= end} == promised[job.name]

        await time.advance(SPAN)

        for wish, job in jobs:
            assert [fired.fire_time for fired in time.fired(job)] == list(promised[job.name]), wish
            assert promised[job.name]
    notes = {note for fires in promised.values() for note in fires.values() if note}
    assert any("not exist" in note or "comes twice" in note for note in notes), "the clock is changed meanwhile"
    assert any("excluded" in note for note in notes)
