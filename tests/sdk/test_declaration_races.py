"""Two processes that use a new job at once: each finds it missing, and one of them declares it first."""

from typing import Any

import psycopg
import pytest

from horai import Horai, Job
from horai.db.pool import Platform
from horai.sdk.job_api import Verbs


class Overtaken(Horai):
    """An application that another one overtakes: it finds its job missing, and the other one declares it."""

    def __init__(self, url: str) -> None:
        super().__init__("shop", database_url=url)
        self.url = url

    async def declare_missing(self, job: Verbs[..., Any]) -> None:
        other = Horai("shop", database_url=self.url)
        charge_of(other)
        await other.declare()
        await other.close()
        await super().declare_missing(job)


def charge_of(app: Horai) -> Job[[int], int]:
    @app.job
    def charge(order: int) -> int:
        return order

    return charge


@pytest.mark.parametrize("verb", ["enqueue", "unique", "many", "put"])
async def test_a_call_is_stored_if_another_process_declares_its_job_in_the_meantime(
    url: str, connection: Platform, verb: str
) -> None:
    app = Overtaken(url)
    charge = charge_of(app)

    match verb:
        case "enqueue":
            await charge.enqueue(1)
        case "unique":
            await charge.options(unique=True).enqueue(1)
        case "many":
            await charge.enqueue_many([1])
        case _:
            await charge.put("k", payload=1)

    assert await connection.fetchval("select count(*) from horai.instance_live") == 1
    await app.close()


async def test_a_call_in_the_callers_transaction_is_stored_too(url: str, connection: Platform) -> None:
    app = Overtaken(url)
    charge = charge_of(app)

    async with connection.transaction():
        await charge.enqueue(1, conn=connection)

    assert await connection.fetchval("select count(*) from horai.instance_live") == 1
    await app.close()


def test_a_call_over_a_blocking_connection_is_stored_too(url: str) -> None:
    app = Overtaken(url)
    charge = charge_of(app)

    with psycopg.connect(url) as conn:
        charge.sync.enqueue(1, conn=conn)
        conn.commit()
        found = conn.execute("select count(*) from horai.instance_live").fetchone()

    assert found == (1,)
    app.close_sync()
