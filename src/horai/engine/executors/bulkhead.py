"""One host's trouble stays its own: a bounded number of calls in flight to it, a bounded number waiting."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta

SHORTEST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=60)


@dataclass(slots=True)
class _Gate:
    """One host. A free place goes straight to the first in line, so nobody overtakes."""

    in_flight: int = 0
    line: deque["asyncio.Future[bool]"] = field(default_factory=deque["asyncio.Future[bool]"])
    turned_away: int = 0


class Bulkhead:
    """At most `in_flight` calls to a host at once and `waiting` in line for it; hosts know nothing of each other."""

    def __init__(self, *, in_flight: int, waiting: int) -> None:
        self._places = in_flight
        self._line = waiting
        self._gates: dict[str, _Gate] = {}
        self._is_closed = False
        self.in_flight = 0
        self.waiting = 0

    async def enter(self, host: str) -> timedelta | None:
        """None: a place is held, `leave` must follow. Otherwise how long to keep away from `host`."""
        if self._is_closed:
            return timedelta(0)
        gate = self._gates.setdefault(host, _Gate())
        if gate.in_flight < self._places:
            gate.turned_away = 0
            self._take(gate)
            return None
        if len(gate.line) >= self._line:
            return self._turn_away(gate)
        return None if await self._wait(host, gate) else timedelta(0)

    def leave(self, host: str) -> None:
        """Give the place back, to the first in line if there is one."""
        gate = self._gates[host]
        gate.in_flight -= 1
        self.in_flight -= 1
        while gate.line and gate.in_flight < self._places:
            first = gate.line.popleft()
            if not first.done():
                self._take(gate)
                first.set_result(True)
        if gate.in_flight == 0:
            del self._gates[host]

    def close(self) -> None:
        """Send everyone in line away; those in flight go on and leave."""
        self._is_closed = True
        for gate in self._gates.values():
            while gate.line:
                first = gate.line.popleft()
                if not first.done():
                    first.set_result(False)

    def _take(self, gate: _Gate) -> None:
        gate.in_flight += 1
        self.in_flight += 1

    async def _wait(self, host: str, gate: _Gate) -> bool:
        """Whether a place was given before the bulkhead closed."""
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        gate.line.append(place)
        self.waiting += 1
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.result():
                self.leave(host)  # given and cancelled in the same moment: pass it on
            elif place in gate.line:
                gate.line.remove(place)
            raise
        finally:
            self.waiting -= 1

    def _turn_away(self, gate: _Gate) -> timedelta:
        """Doubled with every further houseful that found no room: the longer the queue, the later it is asked again."""
        housefuls = gate.turned_away // (self._places + self._line)
        gate.turned_away += 1
        return min(SHORTEST_DELAY * 2 ** min(housefuls, 6), LONGEST_DELAY)
