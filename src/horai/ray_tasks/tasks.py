"""The tasks of a worker in a Ray cluster, and the driver process that the worker keeps running for them."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

import structlog

from horai.core.calls import Call
from horai.core.outcome import Lost, NotSent, Outcome
from horai.isolation.frames import ClaimOver, Hangup, begin, outcome_of
from horai.isolation.orphan_killer import OrphanKiller
from horai.isolation.pool import pause_after
from horai.ray_tasks.driver_process import DriverFailed, DriverProcess
from horai.ray_tasks.messages import Drop, Submit, TaskEnded, TaskNote
from horai.sdk.instance import Notes

log = structlog.get_logger(__name__)

UNREACHABLE = NotSent(timedelta(seconds=1), is_quiet=True)
"""The outcome of a call that was claimed before the worker lost the cluster, and not submitted."""
HINT = (
    "A node of the cluster must run on this machine: `ray start --address=HEAD:6379 --num-cpus=0`, or `ray start --head`. "
    "The worker uses the cluster of --ray-address (RAY_ADDRESS)."
)


class _Submitted(NamedTuple):
    """A call that runs as a task, or waits for the resources of the cluster."""

    call: Call
    outcome: "asyncio.Future[Outcome | Lost]"


class RayTasks:
    """The tasks of the application `app` ("module:app") in the cluster at `address`.

    `on_change` is called when the cluster is reached or lost. Without a cluster no task begins.
    """

    def __init__(self, app: str, address: str) -> None:
        self._app = app
        self._address = address
        self._submitted: dict[tuple[int, int], _Submitted] = {}
        self._orphan_killer = OrphanKiller()
        self._driver: DriverProcess | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._is_closed = False
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done while there is no cluster."""
        self.gone.set_result(None)
        self.on_change: Callable[[bool], None] = lambda _: None
        self.notes: Notes | None = None
        """The receiver of the functions' progress and messages."""

    @property
    def is_reached(self) -> bool:
        """Return whether tasks can be submitted."""
        return self._driver is not None

    def start(self) -> None:
        """Connect to the cluster, and connect again whenever it was lost."""
        self._keeper = asyncio.create_task(self._keep())

    async def run(self, call: Call, handler: str, options: Mapping[str, float]) -> Outcome | Lost:
        """Run the call as a task and return its outcome. Raises only if cancelled, which ends the task."""
        if self._driver is None:
            return UNREACHABLE
        key = call.instance_id, call.fence
        submitted = _Submitted(call, asyncio.get_running_loop().create_future())
        self._submitted[key] = submitted
        timeout = None if call.timeout is None else call.timeout.total_seconds()
        self._say(Submit(*key, handler, begin(call, handler).fields, timeout, dict(options)))
        try:
            return await submitted.outcome
        except asyncio.CancelledError:
            self._say(Drop(*key))
            raise
        finally:
            del self._submitted[key]

    def claim_over(self, instance_id: int, fence: int) -> None:
        """Tell the task of a cancelled or replaced instance. A task that has not begun will not begin."""
        if (instance_id, fence) in self._submitted:
            self._say(ClaimOver(instance_id, fence))

    async def close(self) -> None:
        """Disconnect from the cluster, which ends the tasks, and wait until the driver is dead."""
        self._is_closed = True
        if self._driver is not None:
            await self._driver.leave()
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        await asyncio.to_thread(self._orphan_killer.close)

    async def _keep(self) -> None:
        failures = 0
        while not self._is_closed:
            try:
                driver = await DriverProcess.connect(self._app, self._address, self._orphan_killer)
            except DriverFailed as error:
                failures += 1
                pause = pause_after(failures)
                log.warning(
                    "Ray cannot be reached: jobs with executor='ray' wait",
                    address=self._address,
                    reason=str(error),
                    hint=HINT,
                    pause=str(pause),
                )
                await asyncio.sleep(pause.total_seconds())
                continue
            failures = 0
            log.info("connected to Ray", address=self._address, driver=driver.pid)
            await self._serve(driver)

    async def _serve(self, driver: DriverProcess) -> None:
        """Use a driver until it is dead, and settle its tasks as lost."""
        self._driver = driver
        self.gone = asyncio.get_running_loop().create_future()
        self.on_change(True)
        fate = "The worker has stopped."
        try:
            fate = await driver.hear(self._take)
            if not self._is_closed:
                log.warning("Ray was lost", reason=fate, tasks=len(self._submitted))
        finally:
            driver.kill()
            self._driver = None
            self.gone.set_result(None)
            self.on_change(False)
            for submitted in self._submitted.values():
                _settle(submitted, Lost(f"The worker has lost the Ray cluster: {fate}"))

    def _take(self, message: TaskNote | TaskEnded) -> None:
        submitted = self._submitted.get((message.instance_id, message.fence))
        if submitted is None:
            return
        match message:
            case TaskNote(_, _, progress, text):
                if self.notes is not None:
                    self.notes.note(submitted.call, progress, text)
            case TaskEnded(_, _, ended):
                try:
                    _settle(submitted, outcome_of(ended))
                except Hangup as error:
                    _settle(submitted, Lost(f"The driver {error}."))

    def _say(self, message: Submit | ClaimOver | Drop) -> None:
        if self._driver is not None:
            self._driver.say(message)


def _settle(submitted: _Submitted, outcome: Outcome | Lost) -> None:
    if not submitted.outcome.done():
        submitted.outcome.set_result(outcome)
