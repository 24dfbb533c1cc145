"""Calls over HTTP for tests, and an executor that makes them."""

import asyncio
import base64
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, ParamSpec

from horai.core.addresses import AddressPolicy, parse_networks
from horai.core.calls import Call, HttpTarget
from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, Outcome
from horai.engine.executors.http import HttpExecutor

LOOPBACK = AddressPolicy(parse_networks(["127.0.0.0/8", "::1"]))
SECRET = "whsec_" + base64.b64encode(b"a secret of the tenant").decode()
P = ParamSpec("P")


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an async test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def body() -> None:
            await test(*args, **kwargs)

        asyncio.run(body())

    return run


def call_to(url: str, **changes: Any) -> Call:
    method, headers = changes.pop("method", "POST"), changes.pop("headers", {})
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    fields: dict[str, Any] = {
        "instance_id": 1,
        "job_id": 7,
        "job": "publish",
        "tenant": "acme",
        "key": "article:42",
        "fire_time": at,
        "execute_time": at,
        "attempt": 1,
        "fence": 1,
        "born_for": at,
        "slot": 0,
        "payload": '{"card": "4111"}',
        "target": HttpTarget(url, method, headers),
        "timeout": None,
        "secrets": (SECRET,),
    }
    return Call(**(fields | changes))


@asynccontextmanager
async def executor(policy: AddressPolicy = LOOPBACK, **options: Any) -> AsyncGenerator[HttpExecutor]:
    opened = HttpExecutor(policy, **options)
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


def code_of(outcome: Outcome | Accepted) -> str:
    assert isinstance(outcome, FailedRetryable | FailedUnrecoverable)
    return outcome.code
