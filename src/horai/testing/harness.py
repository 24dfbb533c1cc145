"""Harness: an application under test, on a real PostgreSQL, in a time that only the test moves."""

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from types import TracebackType

from horai.sdk.app import Horai
from horai.sdk.declaration import Duration
from horai.sdk.outcomes import seconds_of
from horai.sdk.sync import PORTAL
from horai.testing.clients import Clients
from horai.testing.clock import VirtualClock, moment_of, present_moment
from horai.testing.server import SERVER
from horai.testing.sync import SyncTime
from horai.testing.virtual_time import VirtualTime
from horai.testing.workplace import Workplace


class Harness:
    """While it is entered, the application has a database of its own, its jobs are declared there, and time stands still.

    `async with Harness(app) as time` in an async test, `with Harness(app) as time` in any other. It begins at `start`
    (a datetime with an offset, or ISO 8601 text), or else at the present moment. `patience` is real time: how long all
    that is due at one moment may take.
    """

    def __init__(self, app: Horai, start: datetime | str | None = None, *, patience: Duration = 60) -> None:
        self._app = app
        self._start = None if start is None else moment_of(start)
        self._patience = seconds_of(patience).total_seconds()
        self._entered: AsyncExitStack | None = None

    async def __aenter__(self) -> VirtualTime:
        if self._entered is not None:
            raise RuntimeError("A harness is entered once at a time.")
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
            workplace = Workplace(url, self._app, clock, self._patience)
            time = VirtualTime(workplace, url)
            clients = Clients(url, clock, workplace.wakeups, time)
            stack.push_async_callback(clients.close)  # after the functions, which may use them
            stack.push_async_callback(workplace.close)
            stack.enter_context(_lent(self._app, clients))
            await workplace.open()
            await self._app.declare_to((await self._app.client()).scope, may_be_unnamed=True)
            yield time


@contextmanager
def _lent(app: Horai, clients: Clients) -> Generator[None]:
    """Whoever asks the application for its client gets one of ours; its own are left alone."""
    own = vars(app)
    if "client" in own:
        raise RuntimeError(f"A harness has been entered with {app.title} already.")
    own["client"], own["close"] = clients.get, clients.release  # found before the methods of its class
    try:
        yield
    finally:
        del own["client"], own["close"]
