"""The starting points for tests of the API, made over the API itself."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from harness import Client, Reply
from keys import KeyHolder, holder
from receiver import Answer, Hit, Receiver
from yarl import URL

FAR = "2999-01-01T00:00:00Z"
"""A time at which nothing runs while a test does."""
SOON = {"maxRetry": 2, "base": "1ms", "jitter": "none"}
"""Retries at once, twice."""

_serial = itertools.count(1)


def name(stem: str = "job") -> str:
    """A job's name that no other test uses."""
    return f"{stem}-{next(_serial)}"


async def job(api: Client, url: str = "http://127.0.0.1:9/hook", **fields: Any) -> Any:
    """A job whose target is `url`; without further fields it runs only what it is told."""
    target = {"type": "http", "url": url}
    made = await api("POST", "/api/v1/jobs", {"name": name(), "target": target, **fields})
    assert made.status == 201, made.json
    return made.json


async def scripted(api: Client, receiver: Receiver, *answers: Answer, **fields: Any) -> Any:
    """A job whose target answers like this, in turn, at the path of the job's name."""
    called = fields.pop("name", None) or name()
    receiver.on(f"/{called}", *answers)
    return await job(api, receiver.url(f"/{called}"), name=called, **fields)


def hits(receiver: Receiver, job: Any) -> list[Hit]:
    """The calls that a job's target has had."""
    return [hit for hit in receiver.hits if hit.path == f"/{job['name']}"]


async def loopback_targets(root: Client, *tenants: str) -> None:
    """Let the jobs of tenants call receivers of this machine; a server with keys refuses that by default."""
    for tenant in tenants:
        networks = {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}}
        reply = await root("PATCH", f"/api/v1/tenants/{tenant}", networks)
        assert reply.status == 200, reply.json


async def admin(server: Client) -> KeyHolder:
    """Close the server. Return an admin of the tenant default, whose jobs may call receivers of this machine."""
    root = await holder(server, "platform-admin")
    await loopback_targets(root, "default")
    return await holder(root, "admin", "default")


async def put(api: Client, job: Any, key: str, at: str | None = FAR, **more: Any) -> Reply:
    """`PUT` of a key."""
    wish = more if at is None else {"executeTime": at, **more}
    return await api("PUT", f"/api/v1/jobs/{job['name']}/instances/{key}", wish)


async def triggered(api: Client, job: Any, key: str | None = None) -> Any:
    """A new instance, due now."""
    reply = await api("POST", f"/api/v1/jobs/{job['id']}/trigger", Idempotency_Key=key or name("key"))
    assert reply.status == 201, reply.json
    return reply.json["instance"]


async def running(api: Client, receiver: Receiver, job: Any, key: str, **more: Any) -> Any:
    """The instance of a key, once the target has been called for it."""
    before = len(hits(receiver, job))
    made = (await put(api, job, key, None, **more)).json["instance"]
    await until(lambda: _is(len(hits(receiver, job)) > before))
    return await api.until_state(made["id"], "RUNNING")


async def sent(api: Client, method: str, path: str, data: Any, **headers: str) -> Reply:
    """Send any bytes, file or stream and return the reply; `headers` may be some that the client would not send."""
    named = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    address = URL(api.base + path, encoded=True)
    async with api.session.request(method, address, data=data, headers=named) as response:
        is_json = "json" in response.headers.get("content-type", "")
        return Reply(response.status, await response.json(content_type=None) if is_json else None, response.headers)


async def until(holds: Callable[[], Awaitable[Any]], within: float = 30.0) -> Any:
    """Wait until `holds` returns a true value, and return it."""
    async with asyncio.timeout(within):
        while not (found := await holds()):
            await asyncio.sleep(0.01)
        return found


async def _is(truth: bool) -> bool:
    return truth


async def read(api: Client, instance: Any) -> Any:
    """The instance as it is now."""
    return (await api("GET", f"/api/v1/instances/{instance['id']}")).json


async def listed(api: Client, path: str) -> list[Any]:
    """Every item of a list, page by page."""
    items: list[Any] = []
    cursor = ""
    while True:
        reply = await api("GET", f"{path}{'&' if '?' in path else '?'}limit=7{cursor}")
        assert reply.status == 200, reply.json
        items += reply.json["items"]
        if reply.json["nextCursor"] is None:
            return items
        cursor = f"&cursor={reply.json['nextCursor']}"
