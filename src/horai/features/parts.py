"""Build the stages and the executors of features from the parts that the kernel passes to them."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from horai.core.controls import ControlBoard
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.db.pool import LOOP_LOCK_TIMEOUT, Plans, PlatformConnections
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.attempts import Executor
from horai.engine.lease import Lease
from horai.engine.loop import Stage
from horai.features.feature import Feature
from horai.operations.job_hooks import JobHooks


class OpenLine(Protocol):
    """A function that creates the connection of a stage."""

    def __call__(
        self, stage: str, lock_timeout: timedelta = LOOP_LOCK_TIMEOUT, plans: Plans = Plans.KEPT, /
    ) -> StageConnection:
        """Return a connection that opens itself and is closed with the stage."""
        ...


@dataclass(frozen=True, slots=True)
class StageParts:
    """The parts from which a feature builds its stages."""

    line: OpenLine
    lease: Lease
    wakeups: Wakeups
    settings: EngineSettings
    roles: frozenset[Role]
    now: datetime
    hooks: Sequence[JobHooks]
    controls: ControlBoard = field(default_factory=ControlBoard)
    """The limits of the governor, as of the last beat of the lease."""
    on_news: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Listeners that are called when any process may have added or moved live rows."""
    on_events: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Listeners that are called when any process has written an event."""


@dataclass(frozen=True, slots=True)
class ExecutorParts:
    """The parts from which a feature builds its executor."""

    pool: PlatformConnections
    wakeups: Wakeups
    settings: EngineSettings
    sources: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """URLs of the databases that reconcilers may read, by name."""


def stages_of(features: Sequence[Feature], parts: StageParts) -> list[Stage]:
    """Build the stages of all features for one process."""
    return [stage for each in features if each.stage is not None for stage in each.module(each.stage).stages(parts)]


@asynccontextmanager
async def executors_of(features: Sequence[Feature], parts: ExecutorParts) -> AsyncGenerator[Mapping[str, Executor]]:
    """Open the executors of all features and yield them by handler."""
    async with AsyncExitStack() as stack:
        modules = [each.module(each.executor) for each in features if each.executor is not None]
        yield {module.HANDLER: await stack.enter_async_context(module.executor(parts)) for module in modules}
