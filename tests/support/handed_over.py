"""Calls that are handed over to a JetStream subject, and the messages that a stream has stored."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from http_calls import call_to
from nats.js import JetStreamContext
from nats.js.api import RawStreamMsg

from horai.core.calls import Call, NatsTarget
from horai.engine.executors.jetstream import JetStreamExecutor


def message_to(subject: str, *, is_reported: bool = False, **changes: Any) -> Call:
    return call_to("", target=NatsTarget("main", subject, is_reported), **changes)


@asynccontextmanager
async def executor_of(url: str, **options: Any) -> AsyncGenerator[JetStreamExecutor]:
    opened = JetStreamExecutor("main", url, waiting=1_000, **options)
    try:
        yield opened
    finally:
        await opened.close()


async def stored(stream: JetStreamContext, name: str) -> list[RawStreamMsg]:
    """Every message of a stream, in order."""
    state = (await stream.stream_info(name)).state
    return [await stream.get_msg(name, seq=seq) for seq in range(state.first_seq, state.last_seq + 1) if state.messages]
