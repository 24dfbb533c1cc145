"""Starts a run of a workflow: one instance of its job becomes an instance of each of its nodes.

At least once, like any attempt, and yet each run once: it has the id of the instance that starts it.
"""

import asyncio
import json
from datetime import timedelta

import structlog

from horai.accept.runs import start_run
from horai.core.calls import Call
from horai.core.settlement import FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Succeeded
from horai.db.runs import Start
from horai.db.wakeups import Wakeups
from horai.engine.executors.house import HELD_UP, Lend

log = structlog.get_logger(__name__)

PAUSE = timedelta(seconds=1)
NO_WORKFLOW = FailedUnrecoverable("WORKFLOW_GONE", "The workflow that this job started has been deleted.")


class WorkflowExecutor:
    """Runs what `horai:workflow` stands for, one after the other."""

    def __init__(self, lend: Lend, wakeups: Wakeups) -> None:
        self._lend = lend
        self._wakeups = wakeups
        self._turn = asyncio.Lock()

    async def run(self, call: Call) -> Outcome:
        """The run's id, once all its instances are there."""
        start = Start(call.instance_id, call.fire_time, call.payload)
        try:
            async with self._turn, self._lend() as connection:
                woken = await start_run(connection, call.job_id, start)
        except HELD_UP:
            return NotSent(PAUSE)
        except Exception as error:
            log.warning("a run could not be started", instance=call.instance_id, error=repr(error))
            return FailedRetryable("WORKFLOW_START", f"The run could not be started: {type(error).__name__}.")
        if woken is None:
            return NO_WORKFLOW
        self._wakeups.announce(woken)
        self._wakeups.runs_asked([call.instance_id])
        return Succeeded(json.dumps({"run": str(call.instance_id)}))
