"""The time of the event loop that each tenant uses, measured step by step, and for how long a tenant has to wait.

The requests and the engine of a process charge the same accounts. Waiting for a database or a host takes no such time.
"""

import time
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any, TypeVar

from horai.core.loop_shares import WINDOW, LoopAccount, LoopShares

T = TypeVar("T")


class LoopLoad:
    """The share of the time for which the thread of the event loop has worked, measured when it is asked for."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.thread_time
    ) -> None:
        self._monotonic, self._worked = monotonic, worked
        self._at, self._worked_at = monotonic(), worked()
        self._load = 0.0

    def __call__(self) -> float:
        """Return the load of the last moments."""
        now = self._monotonic()
        if now >= self._at + WINDOW:
            worked = self._worked()
            self._load = (worked - self._worked_at) / (now - self._at)
            self._at, self._worked_at = now, worked
        return self._load


class LoopTime:
    """The accounts of one process. Create it in the thread of the event loop."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, load: Callable[[], float] | None = None
    ) -> None:
        self._monotonic = monotonic
        self._load = load or LoopLoad()
        self.shares = LoopShares()

    @property
    def pace(self) -> float:
        """Return the seconds that each account gains in a second."""
        return self.shares.pace

    def account(self, tenant: int | None) -> LoopAccount:
        """Return the account of a tenant that has work now."""
        return self.shares.account(tenant, self._monotonic())

    def run(self, call: Coroutine[Any, Any, T], tenant: int) -> Awaitable[T]:
        """Return a call that charges its steps to its tenant."""
        account = self.account(tenant)
        account.begun += 1
        return metered(call, account.charge)

    async def share(self, work: Coroutine[Any, Any, T], rows: Mapping[int, int]) -> T:
        """Do work for the rows of tenants, and charge its time to them by their number of rows."""
        spent: list[float] = []
        try:
            return await metered(work, spent.append)
        finally:
            each = sum(spent) / max(sum(rows.values()), 1)
            for tenant, count in rows.items():
                self.account(tenant).charge(each * count)

    def wait(self, account: LoopAccount) -> float:
        """Return how many seconds the next work of a tenant has to wait; 0.0 if it may begin."""
        return self.shares.wait(account, self._monotonic(), self._load())


@types.coroutine
def metered(coroutine: Coroutine[Any, Any, T], charge: Callable[[float], None]) -> Generator[Any, Any, T]:
    """Run a coroutine, and charge the seconds of each of its steps."""
    step: Callable[[Any], Any] = coroutine.send
    argument: Any = None
    while True:
        began = time.perf_counter()
        try:
            awaited = step(argument)
        except StopIteration as ended:
            return ended.value
        finally:
            charge(time.perf_counter() - began)
        try:
            argument, step = (yield awaited), coroutine.send
        except BaseException as error:  # a cancel goes to the coroutine, like any error
            argument, step = error, coroutine.throw
