"""The stages of one process, wired together, started and stopped in order."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import structlog

from horai.core.settings import EngineSettings
from horai.core.vitals import Vitals
from horai.db.clock import DatabaseClock
from horai.db.line import Line
from horai.db.wakeups import Wakeups
from horai.engine import loop
from horai.engine.attempts import Attempts, Executor
from horai.engine.dispatcher import Bench, Dispatcher
from horai.engine.holdings import Holdings
from horai.engine.janitor import Janitor
from horai.engine.keeper import Keeper
from horai.engine.loop import Stage
from horai.engine.rescuer import Rescuer
from horai.engine.settler import Settler
from horai.engine.trigger import Trigger

log = structlog.get_logger(__name__)

SETTLE_GRACE = timedelta(seconds=5)


class Engine:
    """Trigger, dispatch, settle, rescue, tidy: until told to stop."""

    def __init__(
        self,
        url: str,
        name: str,
        executors: Mapping[str, Executor],
        wakeups: Wakeups,
        vitals: Vitals,
        settings: EngineSettings,
    ) -> None:
        self._url = url
        self._executors = executors
        self._wakeups = wakeups
        self._vitals = vitals
        self._settings = settings
        self.clock = DatabaseClock()
        self.keeper = Keeper(url, name, settings.lease, self.clock, vitals)
        self._holdings = Holdings(settings.in_flight, vitals)
        self._tasks: list[asyncio.Task[None]] = []
        self._stages: list[Stage] = []

    async def start(self) -> None:
        """Returns when the node is registered and every loop runs."""
        await self.keeper.start()
        now = self.clock.now()
        self._settler = Settler(self._line("settler"), self._holdings, self._wakeups, self._vitals, self._settings)
        attempts = Attempts(self._executors, self._settler, self.clock, self._vitals)
        bench = Bench(self.keeper, attempts, self._settler, self._holdings, self.clock, self._vitals, self._settings)
        self._dispatcher = Dispatcher(self._line("dispatcher"), bench)
        trigger = Trigger(self._line("trigger"), self.keeper, self._wakeups, self._settings, now)
        self._wakeups.listen(self._dispatcher.wake)
        self._wakeups.listen_to_outcomes(attempts.outcome_reported)
        self._wakeups.listen_to_schedules(trigger.wake)
        self._stages = [
            self._settler,
            self._dispatcher,
            trigger,
            Rescuer(self._line("rescuer"), self.keeper, self._wakeups, self._settings),
            Janitor(self._line("janitor"), self._wakeups, self._vitals, self._settings, now),
        ]
        self._tasks = [
            asyncio.create_task(loop.run(stage, self.clock, self._vitals), name=stage.name) for stage in self._stages
        ]

    async def watch(self) -> None:
        """Returns only when a loop has died, which no error of a step can bring about."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        raise RuntimeError(f"the loop {next(iter(done)).get_name()} has ended")

    async def stop(self) -> None:
        """Claims nothing more, lets calls end within the grace, settles them, gives the lease back."""
        await self._dispatcher.stop(self._settings.grace)
        try:
            async with asyncio.timeout(SETTLE_GRACE.total_seconds()):
                await self._holdings.emptied()
        except TimeoutError:
            log.warning("not all outcomes were settled; their rows will be rescued", instances=len(self._holdings))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.keeper.stop()
        for stage in self._stages:
            await stage.line.close()

    def _line(self, stage: str) -> Line:
        return Line(self._url, f"horai {stage}")
