"""The share of a process's time that one tenant may take while it serves several tenants.

The requests and the calls of a process take turns in one event loop. All tenants together may take `MOST_LOAD` of its time. They
divide it as water fills vessels: a tenant that needs less than an equal part has all that it needs, and the others share the
rest equally. Each tenant has an account in seconds, which fills at this pace. Every step of its work is charged to it, and work
of the process that belongs to no step is charged to tenants by the number of their requests and calls. A tenant whose account
is below zero waits; one that is alone never does.

Pure: `now` is a monotonic time in seconds.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

MOST_LOAD = 0.75
"""The share of the time for which the event loop works before the busiest of several tenants waits."""
BURST = 0.05
"""The most seconds that an account holds."""
DEEPEST = 0.25
"""The most seconds that an account lacks: one costly request does not keep its tenant waiting for long."""
LONGEST_DEBT = 1.0
"""The most seconds that a tenant waits for what it has used, however many tenants share the process."""
SHORTEST_WAIT = 0.001
"""Seconds below which no work waits."""
WINDOW = 0.1
"""Seconds over which the use of each tenant is measured."""
LATELY = 10.0
"""Seconds after its last work for which a tenant counts."""
WEIGHT = 0.1
"""The weight of the last request in the mean cost of a tenant's requests."""


@dataclass(slots=True, eq=False)
class LoopAccount:
    """The account of one tenant."""

    worked_at: float
    filled_at: float
    level: float = BURST
    mean: float = 0.0
    """Mean seconds that a request of this tenant takes."""
    used: float = 0.0
    """Seconds used in the present window."""
    rate: float = 0.0
    """The share of the time that this tenant has used lately."""
    begun: int = 0
    """Requests and calls that began in the present window."""

    def charge(self, seconds: float) -> None:
        """Take seconds that were used."""
        self.used += seconds
        self.level = max(self.level - seconds, -DEEPEST)

    def reserve(self) -> float:
        """Take the mean cost of a request that begins, and return it: it is given back when the request has ended."""
        self.begun += 1
        self.level -= self.mean
        return self.mean

    def close(self, seconds: float, reserved: float) -> None:
        """Record how many seconds a whole request took, and give back what was reserved for it."""
        self.level += reserved
        self.mean += WEIGHT * (seconds - self.mean)


def equal_part(rates: Iterable[float], share: float) -> float:
    """Return the most that each tenant may use, so that all together use `share`."""
    part = left = share
    ordered = sorted(rates)
    for number, rate in enumerate(ordered):
        part = left / (len(ordered) - number)
        if rate >= part:
            return part
        left -= rate
    return part


class LoopShares:
    """The accounts of the tenants that a process has worked for lately. A caller without a tenant has the account None."""

    def __init__(self) -> None:
        self._accounts: dict[int | None, LoopAccount] = {}
        self.is_shared = False
        """True if the process has worked for more than one tenant lately."""
        self._measured_at = -math.inf
        self._looked_at = -math.inf
        self.pace = MOST_LOAD
        """The seconds that each account gains in a second."""

    def account(self, tenant: int | None, now: float) -> LoopAccount:
        """Return the account of a tenant that has work now. Forget tenants without work."""
        account = self._accounts.get(tenant)
        if account is None:
            account = self._accounts[tenant] = LoopAccount(now, now)
            self.is_shared = len(self._accounts) > 1
        account.worked_at = now
        if self.is_shared and now >= self._looked_at + WINDOW:
            self._looked_at = now
            self._accounts = {who: each for who, each in self._accounts.items() if each.worked_at >= now - LATELY}
            self.is_shared = len(self._accounts) > 1
        return account

    def wait(self, account: LoopAccount, now: float, load: float) -> float:
        """Return how many seconds the next work of a tenant has to wait; 0.0 if it may begin.

        `load` is the share of the time for which the event loop has worked lately.
        """
        if now >= self._measured_at + WINDOW:
            self._measure(now, load)
        if not self.is_shared:
            return 0.0
        level = min(account.level + (now - account.filled_at) * self.pace, BURST)
        account.level = max(level, -self.pace * LONGEST_DEBT)
        account.filled_at = now
        wait = -account.level / self.pace
        return wait if wait >= SHORTEST_WAIT else 0.0

    def _measure(self, now: float, load: float) -> None:
        """Charge the work that belongs to no step, and set the pace by the use of each tenant."""
        passed, self._measured_at = min(now - self._measured_at, LATELY), now
        accounts = [*self._accounts.values()]
        begun = sum(account.begun for account in accounts)
        common = max(load * passed - sum(account.used for account in accounts), 0.0) / max(begun, 1)
        for account in accounts:
            account.charge(common * account.begun)
            account.rate = (account.rate + account.used / passed) / 2
            account.used, account.begun = 0.0, 0
        self.pace = equal_part([account.rate for account in accounts], MOST_LOAD)
