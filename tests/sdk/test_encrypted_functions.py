"""`encrypted=True`: functions get opened payloads, and the database holds envelopes only."""

import asyncio
import base64
import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from callers import Caller
from dumps import every_row
from working import working

from horai import Horai, Instance, InstanceFailed, Retry
from horai.core.errors import Conflict, Invalid
from horai.db.pool import Platform
from horai.sdk import drivers

CANARY = "hunter2canary"
FAR = datetime.now(UTC) + timedelta(days=300)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has an encryption key."""
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(os.urandom(32)).decode())


class Vault:
    """An application with an encrypted job."""

    def __init__(self, url: str, **options: Any) -> None:
        self.app = Horai("vault", database_url=url)
        self.seen: list[Any] = []

        @self.app.job(encrypted=True, retry=Retry(max=0), **options)
        async def store(instance: Instance[dict[str, Any]]) -> dict[str, Any]:
            self.seen.append(instance.payload)
            instance.log(f"saw {CANARY}")
            instance.progress(0.5, f"half of {CANARY}")
            if "fail" in instance.payload:
                raise ValueError(f"no {CANARY}")
            return {"back": instance.payload["card"]}

        self.store = store


async def test_C42c_a_function_gets_the_opened_payload_and_its_caller_the_opened_result(
    url: str, connection: Platform, runner: asyncio.Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = Vault(url)
    async with working(vault.app):
        one = await vault.store.enqueue({"card": CANARY})
        many = await vault.store.enqueue_many([{"card": f"{CANARY}{n}"} for n in range(3)])
        put = await vault.store.put("k", payload={"card": CANARY})
        once = await vault.store.enqueue({"card": CANARY}, idempotency_key="a")
        triggered = await vault.store.trigger({"card": CANARY})
        for handle in (one, *many, put, once, triggered):
            assert CANARY in (await handle.result("20s"))["back"]
        bad = await vault.store.enqueue({"fail": CANARY})
        with pytest.raises(InstanceFailed, match=CANARY):
            await bad.result("20s")
    assert len(vault.seen) == 8
    assert all(CANARY in str(seen) for seen in vault.seen)
    notes = await connection.fetch("select message from horai.note where message is not null")
    assert notes
    assert all(set(json.loads(message)) == {"$enc", "k", "n", "c"} for (message,) in notes)
    assert CANARY not in await every_row(connection)
    said = capsys.readouterr()
    assert CANARY not in said.out + said.err
    assert "dead letter" in said.out
    assert "$enc" not in said.out


async def test_C42c_a_large_payload_is_opened_as_well(url: str, connection: Platform, runner: asyncio.Runner) -> None:
    vault = Vault(url)
    async with working(vault.app):
        handle = await vault.store.enqueue({"card": CANARY, "more": "x" * 200_000})
        assert (await handle.result("20s"))["back"] == CANARY
    assert CANARY not in await every_row(connection)


async def test_C42c_a_declared_payload_is_sealed_once_and_encrypted_never_changes(
    url: str, connection: Platform, runner: asyncio.Runner
) -> None:
    first = Vault(url, payload={"card": CANARY})
    assert (await first.app.declare()).created == ("store",)
    sealed = await connection.fetchval("select payload from horai.job where name = 'store'")
    assert set(json.loads(sealed)) == {"$enc", "k", "n", "c"}
    assert (await Vault(url, payload={"card": CANARY}).app.declare()).unchanged == ("store",)
    tagged = Vault(url, payload={"card": CANARY}, tags=["a"])
    assert (await tagged.app.declare()).changed == ("store",)
    assert await connection.fetchval("select payload::text from horai.job where name = 'store'") == sealed
    other = Vault(url, payload={"card": f"{CANARY}2"}, tags=["a"])
    assert (await other.app.declare()).changed == ("store",)
    assert await connection.fetchval("select payload::text from horai.job where name = 'store'") != sealed

    plain = Horai("vault", database_url=url)

    @plain.job
    async def store(payload: dict[str, Any]) -> None: ...

    with pytest.raises(Invalid, match="never changes"):
        await plain.declare()
    with pytest.raises(Invalid, match="the job is encrypted"):
        await store.enqueue({"card": 1})
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0
    assert CANARY not in await every_row(connection)


async def test_C42c_a_process_without_a_key_refuses_the_job(
    url: str, connection: Platform, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = Vault(url)
    await keyed.app.declare()
    await keyed.app.close()
    monkeypatch.delenv("HORAI_ENCRYPTION_KEY")
    lost = Vault(url)
    with pytest.raises(Conflict, match="no encryption key") as refused:
        await lost.store.enqueue({"card": CANARY})
    assert "HORAI_ENCRYPTION_KEY" in str(refused.value.hint)
    await connection.execute("delete from horai.job")
    with pytest.raises(Conflict, match="no encryption key"):
        await lost.app.declare()
    assert CANARY not in await every_row(connection)


def test_C42c_a_payload_added_in_the_callers_transaction_is_sealed(
    url: str, connection: Platform, runner: asyncio.Runner, caller: Caller
) -> None:
    vault = Vault(url)
    runner.run(vault.app.declare())
    conn = {"conn": caller.conn}
    verbs: Any = vault.store.sync if drivers.is_sync(caller.conn) else vault.store

    def run(made: Any) -> Any:
        return runner.run(made) if asyncio.iscoroutine(made) else made

    caller.begin()
    run(verbs.enqueue({"card": CANARY}, at=FAR, **conn))
    run(verbs.enqueue_many([{"card": CANARY}, {"card": CANARY}], at=FAR, **conn))
    run(verbs.put("k", at=FAR, payload={"card": CANARY}, **conn))
    with pytest.raises(Invalid, match="cannot compare encrypted payloads"):
        run(verbs.put("k", at=FAR, payload={"card": CANARY}, version=1, **conn))
    caller.commit()

    rows = runner.run(connection.fetch("select payload from horai.instance_live"))
    assert len(rows) == 4
    assert all(set(json.loads(payload)) == {"$enc", "k", "n", "c"} for (payload,) in rows)
    assert CANARY not in runner.run(every_row(connection))
    runner.run(vault.app.close())
    vault.app.close_sync()
