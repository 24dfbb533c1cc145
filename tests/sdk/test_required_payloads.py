"""A function that requires a payload: the call that adds an instance without one is refused."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from horai import Horai, Instance, Refresh
from horai.core.errors import Invalid
from horai.db.pool import Platform
from horai.sdk.job import Job

MISSING = "payload: is missing, and the function of 'charge' requires one"
LATER = datetime.now(UTC) + timedelta(hours=1)


@dataclass
class Order:
    id: int


def charge_of(url: str, **options: Any) -> tuple[Horai, Job[..., Any]]:
    app = Horai("shop", database_url=url)

    @app.job(**options)
    async def charge(order: Order) -> int:
        return order.id

    return app, charge


@pytest.mark.parametrize(
    "add",
    [
        lambda job: job.enqueue(),
        lambda job: job.enqueue(idempotency_key="once"),
        lambda job: job.enqueue_many([Order(1), None]),
        lambda job: job.put("order:1", at=LATER),
        lambda job: job.trigger(),
    ],
)
async def test_an_instance_without_its_required_payload_is_refused(
    url: str, connection: Platform, add: Callable[[Job[..., Any]], Awaitable[object]]
) -> None:
    app, charge = charge_of(url)
    await app.declare()

    with pytest.raises(Invalid, match=MISSING):
        await add(charge)

    await app.close()
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0


async def test_in_the_callers_transaction_it_is_refused_too_and_nothing_of_it_stays(
    url: str, connection: Platform
) -> None:
    app, charge = charge_of(url)
    await app.declare()

    async with connection.transaction():
        for add in (
            lambda: charge.enqueue(conn=connection),
            lambda: charge.enqueue_many([None], conn=connection),
            lambda: charge.put("order:1", at=LATER, conn=connection),
        ):
            with pytest.raises(Invalid, match=MISSING):
                await add()
        await charge.put("order:2", at=LATER, payload=Order(2), conn=connection)
    await app.close()

    assert [row["key"] for row in await connection.fetch("select key from horai.instance_live")] == ["order:2"]


def test_without_await_it_is_refused_too(url: str) -> None:
    app, charge = charge_of(url)

    with psycopg.connect(url) as conn:
        for add in (
            charge.sync.enqueue,
            lambda: charge.sync.put("order:1", at=LATER),
            lambda: charge.sync.put("order:1", at=LATER, conn=conn),
        ):
            with pytest.raises(Invalid, match=MISSING):
                add()
        count = conn.execute("select count(*) from horai.instance_live").fetchone()
    app.close_sync()
    assert count == (0,)


async def test_a_put_without_a_payload_moves_an_instance_that_has_one(url: str, connection: Platform) -> None:
    app, charge = charge_of(url)

    assert (await charge.put("order:1", at=LATER, payload=Order(1))).decision == "INSERTED"
    assert (await charge.put("order:1", at=LATER + timedelta(hours=1))).decision == "UPDATED"
    async with connection.transaction():
        assert (await charge.put("order:1", at=LATER, conn=connection)).decision == "UPDATED"
    await app.close()

    assert await connection.fetchval("select payload->>'id' from horai.instance_live") == "1"


async def test_the_payload_of_the_job_or_a_default_of_the_function_is_enough(url: str) -> None:
    app, charge = charge_of(url, payload={"id": 7})

    @app.job
    async def report(order: Order | None = None) -> None: ...

    @app.job
    async def remind(instance: Instance[Any]) -> None: ...

    for job in (charge, report, remind):
        assert (await job.enqueue()).decision == "INSERTED"
    await app.close()


async def test_an_entity_without_the_required_payload_is_refused_and_a_tick_needs_none(url: str) -> None:
    app, charge = charge_of(url, every="1d", refresh=Refresh(window="10d"))
    await app.declare()

    with pytest.raises(Invalid, match=MISSING):
        await charge.entities.add("order:1")
    with pytest.raises(Exception, match="dispatcher"):  # no node runs here: the payload was not asked for
        await charge.trigger()
    await app.close()
