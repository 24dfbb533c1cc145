"""Workflows and entities of encrypted functions, declared and filled by the SDK."""

import asyncio
import base64
import os
from collections.abc import Iterator
from typing import Any

import harness
import pytest
from callers import KINDS, Caller
from dumps import every_row
from working import working

from horai import Horai, Instance, Node, Refresh
from horai.core.encryption import KeyEncryptionKey
from horai.core.errors import Invalid
from horai.db.pool import Platform
from horai.sdk import drivers

CANARY = "hunter2canary"
KEY = KeyEncryptionKey(os.urandom(32))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has an encryption key."""
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(KEY.key).decode())


class Vault:
    """An application whose functions are encrypted: two in a workflow, and one with entities."""

    def __init__(self, url: str, payload: Any = None) -> None:
        self.app = Horai("vault", database_url=url)
        self.seen: dict[str, Any] = {}
        self.done = asyncio.Event()

        @self.app.job(encrypted=True)
        async def take(instance: Instance[dict[str, Any]]) -> dict[str, Any]:
            self.seen["take"] = instance.payload
            return {"token": CANARY}

        @self.app.job(encrypted=True)
        async def give(instance: Instance[dict[str, Any]]) -> None:
            self.seen["give"] = instance.payload
            self.done.set()

        @self.app.job(encrypted=True, every="1s", refresh=Refresh(window="1d", run_on_add=True))
        async def renew(instance: Instance[dict[str, Any]]) -> None:
            self.seen[str(instance.key)] = instance.payload

        self.renew = renew
        nodes = [
            Node(take, payload={"card": CANARY} if payload is None else payload),
            Node(give, after=[take], payload={"x": 1}),
        ]
        self.flow = self.app.workflow("vaulted", nodes)


async def test_C42_a_declared_workflow_hands_results_over_sealed_and_is_written_once(
    url: str, connection: Platform, runner: asyncio.Runner
) -> None:
    vault = Vault(url)
    async with harness.node(url, encryption_keys=(KEY,)), working(vault.app):
        await vault.flow.trigger()
        async with asyncio.timeout(30):
            await vault.done.wait()
    assert vault.seen == {"take": {"card": CANARY}, "give": {"x": 1, "parents": {"take": {"token": CANARY}}}}
    assert "vaulted" in (await Vault(url).app.declare()).unchanged
    assert "vaulted" in (await Vault(url, {"card": "other"}).app.declare()).changed
    assert CANARY not in await every_row(connection)


def test_C42_a_workflow_itself_cannot_be_encrypted() -> None:
    app = Horai("vault")

    @app.job(encrypted=True)
    async def take(payload: dict[str, Any]) -> None: ...

    with pytest.raises(Invalid, match="is not for workflows"):
        app.workflow("vaulted", [Node(take)], encrypted=True)


async def test_C42_entities_of_an_encrypted_function_are_sealed(
    url: str, connection: Platform, runner: asyncio.Runner
) -> None:
    vault = Vault(url)
    async with working(vault.app):
        assert await vault.renew.entities.add_many({"a": {"card": CANARY}, "b": {"card": f"{CANARY}2"}}) == 2
        async with asyncio.timeout(30):
            while not {"a", "b"} <= vault.seen.keys():
                await asyncio.sleep(0.01)
    assert vault.seen == {"a": {"card": CANARY}, "b": {"card": f"{CANARY}2"}}
    assert CANARY not in await every_row(connection)


@pytest.fixture(params=["asyncpg", "psycopg"])
def caller(request: pytest.FixtureRequest, url: str, runner: asyncio.Runner) -> Iterator[Caller]:
    """A connection of the caller; its transaction is the caller's."""
    with KINDS[request.param](url, runner) as opened:
        yield opened


def test_C42_entities_added_in_the_callers_transaction_are_sealed(
    url: str, connection: Platform, runner: asyncio.Runner, caller: Caller
) -> None:
    vault = Vault(url)
    runner.run(vault.app.declare())
    is_sync = drivers.is_sync(caller.conn)
    entities: Any = (vault.renew.sync if is_sync else vault.renew).entities
    caller.begin()
    made = entities.add("a", {"card": CANARY}, conn=caller.conn)
    assert runner.run(made) if asyncio.iscoroutine(made) else made
    caller.commit()
    stored = runner.run(
        connection.fetch("select payload from horai.entity union all select payload from horai.instance_live")
    )
    assert len(stored) >= 2
    assert all('"$enc"' in payload for (payload,) in stored)
    assert CANARY not in runner.run(every_row(connection))
    runner.run(vault.app.close())
    vault.app.close_sync()
