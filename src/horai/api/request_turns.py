"""Turns of requests: the requests of one of several tenants wait for its share of the server's time."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from horai.core.errors import RetryLimited
from horai.core.loop_shares import LoopAccount
from horai.operations.loop_time import LoopTime
from horai.text import Hint, Refused

METER = "horai.meter"
LOOK_AGAIN = 0.02
"""Seconds after which a waiting request asks again: its share may have grown."""
LONGEST_WAIT = 5.0
"""Seconds beyond which a request is refused instead of waiting."""


class RequestMeter:
    """The seconds that one request has used, and the account of its tenant, once that is known."""

    __slots__ = ("account", "reserved", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.account: LoopAccount | None = None
        self.reserved = 0.0

    def charge(self, seconds: float) -> None:
        """Add the seconds of a step."""
        self.seconds += seconds
        if self.account is not None:
            self.account.charge(seconds)

    def close(self) -> None:
        """Record the cost of the whole request."""
        if self.account is not None:
            self.account.close(self.seconds, self.reserved)


class RequestTurns:
    """The turns of all requests of a server."""

    def __init__(self, loop_time: LoopTime, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._time = loop_time
        self._sleep = sleep
        self._waiting: Counter[int | None] = Counter()
        self._heads: dict[int | None, asyncio.Lock] = {}

    async def enter(self, tenant: int | None, meter: RequestMeter) -> None:
        """Wait for the turn of a request. Raise `RetryLimited` if it would wait for too long."""
        account = self._time.account(tenant)
        account.charge(meter.seconds)
        if tenant in self._waiting or self._time.wait(account) > 0.0:
            await self._in_line(tenant, account)
        meter.account, meter.reserved = account, account.reserve()

    async def _in_line(self, tenant: int | None, account: LoopAccount) -> None:
        """Wait behind earlier requests of the tenant."""
        if self._time.wait(account) + self._waiting[tenant] * account.mean / self._time.pace > LONGEST_WAIT:
            after = {"retryAfter": str(round(LONGEST_WAIT))}
            raise RetryLimited(Refused.TOO_MANY_REQUESTS(), Hint.SEND_FEWER_REQUESTS(), extra=after)
        self._waiting[tenant] += 1
        try:
            async with self._heads.setdefault(tenant, asyncio.Lock()):
                while (wait := self._time.wait(account)) > 0.0:
                    await self._sleep(min(wait, LOOK_AGAIN))
        finally:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]
                del self._heads[tenant]
