"""A pool of isolated functions, of which nothing must be left."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from isolated_calls import Heard, call, pythons

from horai.core.outcome import FailedRetryable, Outcome, Succeeded
from horai.isolation.pool import IsolatedFunctions


@asynccontextmanager
async def isolated(
    processes: int = 1, app: str = "isolated_app:app", **settings: Any
) -> AsyncGenerator[tuple[IsolatedFunctions, Heard]]:
    """A pool, and an ear; closed at the end, and nothing must be left of it."""
    before = pythons()
    functions, heard = IsolatedFunctions(app, processes, **settings), Heard()
    functions.notes = heard
    try:
        yield functions, heard
    finally:
        await functions.close()
    assert not pythons() - before


async def value(functions: IsolatedFunctions, handler: str, payload: Any = None) -> Any:
    """Run a function that succeeds, and return its result."""
    outcome = await functions.run(call(handler, payload))
    assert isinstance(outcome, Succeeded), outcome
    return None if outcome.output is None else json.loads(outcome.output)


def died(outcome: Outcome) -> str:
    """Of what."""
    assert isinstance(outcome, FailedRetryable)
    assert outcome.code == "PROCESS_DIED"
    return outcome.message
