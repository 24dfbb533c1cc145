"""The limits of remote workers on one server, and the start of the engine that claims for them."""

from collections.abc import Awaitable, Callable

from horai.core.errors import Busy
from horai.core.settings import ServerLimits
from horai.features.remote_workers.hub import WorkerHub
from horai.features.remote_workers.phrases import WorkerWords
from horai.features.remote_workers.session import SessionOwner
from horai.text import Hint, Refused


class SessionLimits:
    """Admits sessions of workers."""

    def __init__(self, hub: WorkerHub, limits: ServerLimits) -> None:
        self._hub = hub
        self._limits = limits
        self.start_engine: Callable[[], Awaitable[None]] | None = None
        """Starts the engine unless it runs; None if this server has none."""

    def admit(self, owner: SessionOwner) -> None:
        """Raise `Busy` if the server takes no further session of this key."""
        if self._hub.is_draining:
            raise Busy(Refused.STOPPING(), Hint.ASK_LATER())
        if len(self._hub.sessions) >= self._limits.workers:
            raise Busy(WorkerWords.TOO_MANY_WORKERS(most=self._limits.workers), Hint.ASK_LATER())
        if self._hub.of_owner[owner] >= self._limits.workers_per_key:
            raise Busy(WorkerWords.TOO_MANY_OF_KEY(most=self._limits.workers_per_key), Hint.ASK_LATER())

    async def ensure_engine(self) -> None:
        """Start the engine that claims for the sessions. Raise `Busy` if this server has none."""
        if self.start_engine is None:
            raise Busy(WorkerWords.NO_ENGINE(), Hint.ASK_LATER())
        await self.start_engine()
