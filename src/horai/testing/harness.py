"""A harness for an application under test: a real PostgreSQL, and a time that only the test moves."""

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from types import TracebackType

from horai.db.wakeups import Wakeups
from horai.features.parts import ExecutorParts, executors_of
from horai.features.registry import FEATURES
from horai.sdk.app import Horai
from horai.sdk.declaration import Duration
from horai.sdk.outcomes import seconds_of
from horai.sdk.portal import PORTAL
from horai.testing.clients import Clients
from horai.testing.clock import VirtualClock, moment_of, present_moment
from horai.testing.server import SERVER
from horai.testing.sync import SyncTime
from horai.testing.virtual_time import VirtualTime
from horai.testing.workplace import SETTINGS, SharedConnection, Workplace


class Harness:
    """A context in which the application has its own database, its jobs are declared there, and time stands still.

    Use `async with Harness(app) as time` in an async test, and `with Harness(app) as time` in any other. The time
    begins at `start` (a datetime with an offset, or ISO 8601 text), or else at the real time. `patience` is the longest
    real time that the work due at one moment may take.
    """

    def __init__(self, app: Horai, start: datetime | str | None = None, *, patience: Duration = 60) -> None:
        self._app = app
        self._start = None if start is None else moment_of(start)
        self._patience = seconds_of(patience).total_seconds()
        self._entered: AsyncExitStack | None = None

    async def __aenter__(self) -> VirtualTime:
        if self._entered is not None:
            raise RuntimeError("The harness is entered already.")
        async with AsyncExitStack() as stack:
            time = await stack.enter_async_context(self._time())
            self._entered = stack.pop_all()
            return time
        raise AssertionError("unreachable")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            await entered.aclose()

    def __enter__(self) -> SyncTime:
        return SyncTime(PORTAL.run(self.__aenter__()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        PORTAL.run(self.__aexit__(kind, error, where))

    @asynccontextmanager
    async def _time(self) -> AsyncGenerator[VirtualTime]:
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(SERVER.database())
            clock = VirtualClock(self._start or present_moment())
            wakeups, shared = Wakeups(), SharedConnection(url)
            stack.push_async_callback(shared.close)
            builtin = await stack.enter_async_context(executors_of(FEATURES, ExecutorParts(shared, wakeups, SETTINGS)))
            workplace = Workplace(url, self._app, clock, self._patience, wakeups, builtin)
            time = VirtualTime(workplace, url)
            clients = Clients(url, clock, workplace.wakeups, time)
            stack.push_async_callback(clients.close)  # after the functions, which may use them
            stack.enter_context(_lent(self._app, clients))
            await stack.enter_async_context(self._app.lifecycle.opened())
            stack.push_async_callback(workplace.close)  # before the hooks of the end
            await workplace.open()
            await self._app.declare_to((await self._app.client()).scope, may_be_unnamed=True)
            yield time


@contextmanager
def _lent(app: Horai, clients: Clients) -> Generator[None]:
    """Replace the clients of the application by those of the test; its own clients stay untouched."""
    own = vars(app)
    if "client" in own:
        raise RuntimeError(f"Another harness with {app.title} is entered already.")
    own["client"], own["close"] = clients.get, clients.release  # found before the methods of its class
    try:
        yield
    finally:
        del own["client"], own["close"]
