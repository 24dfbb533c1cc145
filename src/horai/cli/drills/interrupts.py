"""A command that ends its servers when it is interrupted."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from horai.cli.errors import CommandFailed

Result = TypeVar("Result")


def run_until_told(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work. On SIGINT and SIGTERM it is cancelled, so that it stops its servers; then raise `CommandFailed`."""
    try:
        return asyncio.run(_cancelled_by_signals(work))
    except asyncio.CancelledError as error:
        raise CommandFailed("The drill was interrupted; its servers are stopped.") from error


async def _cancelled_by_signals(work: Coroutine[Any, Any, Result]) -> Result:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
