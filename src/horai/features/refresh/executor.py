"""The executor of the ticks of refresh jobs: each attempt is one check, and an unfinished tick is postponed."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import structlog

from horai.core.calls import Call
from horai.core.outcome import FailedRetryable, Outcome, Postponed, Succeeded
from horai.core.refresh import LOOK, REFRESH_HANDLER
from horai.db.pool import acquire
from horai.db.wakeups import Wakeups
from horai.engine.executors.builtin import HELD_UP, Lend
from horai.features.parts import ExecutorParts
from horai.features.refresh.tick import Tick, check

HANDLER = REFRESH_HANDLER

log = structlog.get_logger(__name__)


class RefreshExecutor:
    """The executor of the handler `horai:refresh`."""

    def __init__(self, lend: Lend, wakeups: Wakeups) -> None:
        self._lend = lend
        self._wakeups = wakeups

    async def run(self, call: Call) -> Outcome:
        """Check a tick once; postpone it if it is not over."""
        try:
            async with self._lend() as connection:
                looked = await check(connection, Tick(call.job_id, call.instance_id, call.fire_time))
        except HELD_UP as error:
            log.warning("tick delayed", instance=call.instance_id, error=repr(error))
            return Postponed(5 * LOOK, is_quiet=True)
        except Exception as error:
            log.error("tick failed", instance=call.instance_id, error=repr(error))
            return FailedRetryable("REFRESH_TICK", f"The tick failed: {type(error).__name__}: {error}"[:500])
        self._wakeups.announce_new(looked.woken)
        if looked.again is not None:
            return Postponed(looked.again, is_quiet=True)
        return Succeeded(json.dumps(looked.result))


@asynccontextmanager
async def executor(parts: ExecutorParts) -> AsyncGenerator[RefreshExecutor]:
    """Open the executor for one process."""
    yield RefreshExecutor(lambda: acquire(parts.pool), parts.wakeups)
