"""`search_paths=[…]`: instances that the SDK adds to an encrypted job are found by declared fields."""

import asyncio
import base64
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import harness
import pytest
from callers import Caller

from horai import Horai
from horai.core.encryption import KeyEncryptionKey
from horai.core.errors import HoraiError, Invalid
from horai.db.pool import Platform
from horai.sdk import drivers

KEY = KeyEncryptionKey(os.urandom(32))
FAR = datetime.now(UTC) + timedelta(days=300)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has an encryption key."""
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(KEY.key).decode())


def shop(url: str, *paths: str, **options: Any) -> tuple[Horai, Any]:
    """An application with an encrypted job that is searched by these paths."""
    app = Horai("shop", database_url=url)

    @app.job(encrypted=True, search_paths=list(paths), **options)
    async def charge(payload: dict[str, Any]) -> None: ...

    return app, charge


async def found(url: str, field: str) -> set[int]:
    """Return the instances that a node with the same key finds."""
    async with harness.node(url, encryption_keys=(KEY,)) as api:
        reply = await api("GET", f"/api/v1/instances?job=charge&payload={field.replace('=', '%3D')}")
        assert reply.status == 200, reply.json
        return {int(item["id"]) for item in reply.json["items"]}


async def test_C42c_every_verb_indexes_the_instances_that_it_adds(
    url: str, connection: Platform, runner: asyncio.Runner
) -> None:
    app, charge = shop(url, "orderId", "customer.id", payload={"orderId": "own"})
    assert (await app.declare()).created == ("charge",)
    at: Any = {"at": FAR}
    made = [
        await charge.enqueue({"orderId": "x"}, **at),
        *await charge.enqueue_many([{"orderId": "x"}, {"orderId": "x"}], **at),
        await charge.put("a", payload={"orderId": "x", "customer": {"id": 5}}, **at),
        await charge.enqueue({"orderId": "x"}, idempotency_key="once", **at),
    ]
    own = [await charge.enqueue(**at), await charge.put("b", **at)]
    await charge.enqueue({"orderId": "y"}, **at)
    await app.close()
    assert await found(url, "orderId=x") == {int(one.id) for one in made}
    assert await found(url, "orderId=own") == {int(one.id) for one in own}
    assert await found(url, "customer.id=5") == {int(made[3].id)}


async def test_C42c_an_application_that_declares_other_search_paths_adds_nothing(
    url: str, connection: Platform, runner: asyncio.Runner
) -> None:
    app, _ = shop(url, "orderId")
    await app.declare()
    await app.close()
    for paths in ((), ("customer",), ("orderId", "customer")):
        other, stale = shop(url, *paths)
        with pytest.raises(Invalid, match="never changes"):
            await other.declare()
        with pytest.raises(Invalid, match="other search paths: orderId"):
            await stale.enqueue({"orderId": "x"})
        with pytest.raises(Invalid, match="other search paths: orderId"):
            await stale.enqueue_many([{"orderId": "x"}, {"orderId": "y"}])
        with pytest.raises(Invalid, match="other search paths: orderId"):
            await stale.enqueue({"orderId": "x"}, idempotency_key="once")
        async with connection.transaction():
            with pytest.raises(HoraiError, match="other search paths"):
                await stale.enqueue({"orderId": "x"}, conn=connection)
        await other.close()
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0


def test_C42c_search_paths_are_for_encrypted_jobs_only() -> None:
    app = Horai("shop")
    with pytest.raises(Invalid, match="only accepted for an encrypted job"):
        app.job(search_paths=["orderId"])(lambda payload: None)
    with pytest.raises(Invalid, match="must be a list"):
        app.job(encrypted=True, search_paths="orderId")(lambda payload: None)


def test_C42c_digests_belong_to_the_transaction_of_the_caller(
    url: str, connection: Platform, runner: asyncio.Runner, caller: Caller
) -> None:
    app, charge = shop(url, "orderId", payload={"orderId": "own"})
    runner.run(app.declare())
    verbs: Any = charge.sync if drivers.is_sync(caller.conn) else charge

    def run(made: Any) -> Any:
        return runner.run(made) if asyncio.iscoroutine(made) else made

    def add(value: str) -> list[int]:
        more: Any = {"at": FAR, "conn": caller.conn}
        one = run(verbs.enqueue({"orderId": value}, **more))
        many = run(verbs.enqueue_many([{"orderId": value}, {"orderId": value}], **more))
        moved = run(verbs.put("k", payload={"orderId": "before"}, **more))
        run(verbs.put("k", payload={"orderId": value}, **more))
        run(verbs.put("k", **more))
        return [int(each.id) for each in (one, *many, moved)]

    def indexed() -> list[Any]:
        sql = (
            "select instance_id, path, octet_length(digest) from horai.payload_digest where instance_id > 0 order by 1"
        )
        return [tuple(row) for row in runner.run(connection.fetch(sql))]

    caller.begin()
    add("gone")
    caller.rollback()
    assert indexed() == []

    caller.begin()
    ids = add("kept")
    own = run(verbs.enqueue(at=FAR, conn=caller.conn))
    caller.commit()
    assert indexed() == [(id_, 1, 41) for id_ in sorted([*ids, int(own.id)])]
    stored = runner.run(connection.fetch("select payload from horai.instance_live"))
    assert all('"d"' not in payload for (payload,) in stored)
    runner.run(app.close())
    app.close_sync()
    assert runner.run(found(url, "orderId=kept")) == set(ids)
    assert runner.run(found(url, "orderId=own")) == {int(own.id)}
    assert runner.run(found(url, "orderId=before")) == set()


async def test_C42c_sql_clients_cannot_pass_digests_of_their_own(
    url: str, connection: Platform, runner: asyncio.Runner
) -> None:
    app, _ = shop(url, "orderId")
    await app.declare()
    (sealed,) = await (await app.client()).sealed("charge", ['{"orderId": 1}'], ["orderId"])
    (bare,) = await (await app.client()).sealed("charge", ['{"orderId": 1}'], [])
    assert sealed is not None
    for strange in (bare, sealed.replace('"orderId"', '"card"'), sealed.replace('"d":{', '"x":1,"d":{')):
        with pytest.raises(Exception, match=r"other search paths|is encrypted"):
            await connection.execute("select horai.enqueue('charge', $1::text::json)", strange)
    await connection.execute("select horai.enqueue('charge', $1::text::json)", sealed)
    assert await connection.fetchval("select count(*) from horai.payload_digest") == 1
    await app.close()
