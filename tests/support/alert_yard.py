"""Channels and rules of a node under test, and the messages that a receiver got."""

import asyncio
from datetime import timedelta
from typing import Any

from harness import Client
from receiver import Receiver

CHANNELS, RULES = "/api/v1/alerts/channels", "/api/v1/alerts/rules"
QUICK: dict[str, Any] = {"alerts_every": timedelta(milliseconds=200), "alerts_retry": timedelta(milliseconds=100)}
"""Settings of a node that evaluates and retries soon."""


async def channel(api: Client, url: str, name: str = "ops", **fields: Any) -> Any:
    """A webhook, unless the fields name another kind."""
    made = await api("POST", CHANNELS, {"name": name, "kind": "webhook", "url": url, **fields})
    assert made.status == 201, made.json
    return made.json


async def rule(api: Client, kind: str, name: str = "watch", **fields: Any) -> Any:
    """A rule that tells the channel `ops` at once."""
    body = {"name": name, "kind": kind, "channels": ["ops"], "groupWait": "0s", **fields}
    made = await api("POST", RULES, body)
    assert made.status == 201, made.json
    return made.json


async def watching(api: Client, receiver: Receiver, kind: str, **fields: Any) -> Any:
    """A channel to the receiver and a rule that uses it."""
    await channel(api, receiver.url("/alerts"))
    return await rule(api, kind, **fields)


async def told(receiver: Receiver, count: int, path: str = "/alerts") -> list[Any]:
    """The messages at a path, as soon as there are that many."""
    async with asyncio.timeout(30):
        while len(found := [hit.json for hit in receiver.hits if hit.path == path]) < count:
            await receiver.wait_for(len(receiver.hits) + 1)
    return found


async def until_listed(api: Client, path: str, count: int) -> list[Any]:
    """The items of a list, as soon as there are that many."""
    async with asyncio.timeout(30):
        while len(found := (await api("GET", path)).json["items"]) != count:
            await asyncio.sleep(0.02)
    return found


def kinds(messages: list[Any]) -> list[str]:
    """The last word of each message's type."""
    return [message["type"].rpartition(".")[2] for message in messages]
