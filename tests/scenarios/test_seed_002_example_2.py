"""Seed 002 §18, example 2: a clearing job that fails is retried after 1, 2, 4 and 8 s, then becomes a dead letter."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from horai import Horai, Instance, Retry

START = datetime(2026, 11, 11, 2, tzinfo=UTC)


async def test_C59b_C48_clearing_is_retried_after_1_2_4_and_8_seconds_then_buried(
    horai_harness: Callable[..., Any],
) -> None:
    app = Horai("bank")

    @app.job(retry=Retry(max=4, base="500ms", jitter="none"))
    async def clear(instance: Instance[dict[str, int]]) -> None:
        raise ConnectionError(f"the clearing house does not take batch {instance.payload['batch']}")

    async with horai_harness(app, start=START) as time:
        await clear.put("batch:7", payload={"batch": 7})
        await time.advance("1h")

        tried = time.fired(clear)
        seconds = [(one.ran_at - START) / timedelta(seconds=1) for one in tried]
        assert seconds == [0, 1, 3, 7, 15]  # 1, 2, 4 and 8 s after the failure before
        assert [one.state for one in tried] == ["FAIL", "FAIL", "FAIL", "FAIL", "DEAD"]

        connection = await asyncpg.connect(time.database_url)
        letters = await connection.fetch("select * from horai.dlq_entry")
        tags = await connection.fetchval("select tags from horai.dead_letter")
        await connection.close()
        assert [(letter["error_code"], letter["replay_status"]) for letter in letters] == [("ConnectionError", "NEW")]
        assert tags == ["transient_error"]
