"""The executor that starts a run of a workflow: one instance of its job becomes an instance of each of its nodes.

An attempt executes at least once, but each run is created once, because it has the id of the instance that starts it.
That instance is handed over to its run and ends with it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog

from horai.core.calls import Call
from horai.core.errors import Conflict, Invalid, KeyUnavailable
from horai.core.limits import MESSAGE_LIMIT
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, NotSent, Outcome
from horai.core.wakes import ExpiriesWake, RunsWake
from horai.db.claims import Claim
from horai.db.pool import acquire
from horai.db.wakeups import Wakeups
from horai.engine.executors.builtin import HELD_UP, Lend
from horai.features.parts import ExecutorParts
from horai.features.workflow.child_settings import DEPTH_LIMIT
from horai.features.workflow.definition import WORKFLOW_HANDLER
from horai.features.workflow.run_store import RunStart
from horai.features.workflow.runs import StarterLost, TooDeep, begin_run
from horai.operations.keyring import Keyring, keyring_of

HANDLER = WORKFLOW_HANDLER

log = structlog.get_logger(__name__)

PAUSE = timedelta(seconds=1)
KEY_PAUSE = timedelta(seconds=10)
HANDED_OVER = NotSent()
"""The instance belongs to its run now, and no settlement of this claim changes it.

This node releases what the claim took.
"""
NO_WORKFLOW = FailedUnrecoverable("WORKFLOW_GONE", "The workflow that this job started has been deleted.")

TOO_DEEP = FailedUnrecoverable(
    "WORKFLOW_TOO_DEEP",
    f"More than {DEPTH_LIMIT} runs of workflows would be inside each other: a workflow runs itself.",
)


class WorkflowExecutor:
    """The executor of the handler `horai:workflow`; it starts one run at a time."""

    def __init__(self, lend: Lend, wakeups: Wakeups, keyring: Keyring | None = None) -> None:
        self._lend = lend
        self._wakeups = wakeups
        self._keyring = keyring
        self._turn = asyncio.Lock()

    async def run(self, call: Call) -> Outcome:
        """Create the instances of all nodes and hand the starting instance over to its run."""
        start = RunStart(call.instance_id, call.fire_time, call.payload, call.interval_start)
        held = Claim(call.instance_id, call.job_id, call.attempt, call.fence, call.node, 0)
        try:
            async with self._turn, self._lend() as connection:
                woken = await begin_run(connection, held, start, self._keyring)
        except StarterLost:
            return HANDED_OVER
        except TooDeep:
            return TOO_DEEP
        except HELD_UP:
            return NotSent(PAUSE)
        except (Conflict, KeyUnavailable):
            log.warning("a run waits: its payload has to be sealed, and the key is missing", instance=call.instance_id)
            return NotSent(KEY_PAUSE)
        except Invalid as error:
            return FailedUnrecoverable(
                "PARAMS_INVALID", f"The payload does not fit the parameters: {error.detail}"[:MESSAGE_LIMIT]
            )
        except Exception as error:
            log.warning("a run could not be started", instance=call.instance_id, error=repr(error))
            return FailedRetryable("WORKFLOW_START", f"The run could not be started: {type(error).__name__}.")
        if woken is None:
            return NO_WORKFLOW
        self._wakeups.announce_new(woken)
        self._wakeups.publish(RunsWake([call.instance_id]))
        self._wakeups.publish(ExpiriesWake())  # it may have begun with sensors
        return HANDED_OVER


@asynccontextmanager
async def executor(parts: ExecutorParts) -> AsyncGenerator[WorkflowExecutor]:
    """Open the executor for one process."""
    keyring = keyring_of(parts.settings).forget_when_erased(parts.wakeups)
    yield WorkflowExecutor(lambda: acquire(parts.pool), parts.wakeups, keyring)
