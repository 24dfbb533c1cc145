"""A bulkhead per host: bounded numbers of calls in flight and of calls waiting, so that one slow host affects no other.

A call that finds no room is told when to retry: by the pace of the calls that end at the host, each one turn after the
one before, so that a quick host is kept busy. For a host where no call ends, the delays grow. The line of a quick host is
longer: it lasts for `AHEAD` seconds, so that the host does not wait for the next claim.
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

SHORTEST_DELAY = timedelta(milliseconds=100)
FIRST_DELAY = timedelta(seconds=1)
"""The first delay for a host whose pace is not known."""
LONGEST_DELAY = timedelta(seconds=60)
LONGEST_BUSY = 5.0
"""Seconds for which the pace of a host is relied on."""
SILENT = 5.0
"""Seconds without the end of a call after which the measured pace is not used."""
AHEAD = 0.1
"""Seconds that the line of a quick host lasts, at the pace of the last `AHEAD` seconds."""
LONGEST_LINE = 512
WEIGHT = 0.05
"""The weight of the last gap between two ends in the moving average."""


class BusyTime(NamedTuple):
    """For how many seconds a full host needs no further call."""

    seconds: float
    is_silent: bool
    """True if no call has ended lately: the end of any call is news."""


class HostRoom(NamedTuple):
    """The number of calls that a host accepts, and the number of those under way and in line."""

    accepts: int
    load: int


NOT_BUSY = BusyTime(0.0, is_silent=False)


@dataclass(slots=True)
class _Gate:
    """The state of one host. A free place goes straight to the first call in line: no call overtakes another."""

    in_flight: int = 0
    line: deque["asyncio.Future[bool]"] = field(default_factory=deque["asyncio.Future[bool]"])
    turned_away: int = 0
    ended_at: float | None = None
    gap: float | None = None
    """Mean seconds between the ends of two calls."""
    counted_from: float = 0.0
    ends: int = 0
    """Calls that have ended since `counted_from`."""
    pace: int = 0
    """Calls that ended in the `AHEAD` seconds before `counted_from`."""

    def note_end(self, now: float) -> None:
        """Record that a call has ended."""
        if now >= self.counted_from + AHEAD:
            self.pace = int(self.ends * AHEAD / (now - self.counted_from))
            self.counted_from, self.ends = now, 0
        self.ends += 1
        if self.ended_at is not None:
            last = now - self.ended_at
            self.gap = last if self.gap is None else self.gap + WEIGHT * (last - self.gap)
        self.ended_at = now

    def turn(self, now: float) -> float | None:
        """Return the seconds from one call's turn to the next; None while the pace is not known."""
        return None if self.ended_at is None or now - self.ended_at > SILENT else self.gap


class Bulkhead:
    """At most `in_flight` calls to a host at once and `waiting` in line for it. Hosts do not affect each other."""

    def __init__(self, *, in_flight: int, waiting: int) -> None:
        self._places = in_flight
        self._line = waiting
        self._gates: dict[str, _Gate] = {}
        self._is_closed = False
        self.in_flight = 0
        self.waiting = 0

    async def enter(self, host: str) -> timedelta | None:
        """Return None if a place is taken (`leave` must follow), or how long to keep away from `host`."""
        if self._is_closed:
            return timedelta(0)
        gate = self._gates.setdefault(host, _Gate())
        if gate.in_flight < self._places:
            gate.turned_away = 0
            self._take(gate)
            return None
        if len(gate.line) >= self._line_of(gate):
            return self._turn_away(gate)
        return None if await self._wait(host, gate) else timedelta(0)

    def busy(self, host: str) -> BusyTime:
        """Return how long the calls in line keep a host busy: until half of the line is free; 0 seconds if it is.

        Without a known pace it is the delay of the call that was turned away last.
        """
        gate = self._gates.get(host)
        half = self._line // 2 if gate is None else self._line_of(gate) // 2
        if gate is None or len(gate.line) <= half:
            return NOT_BUSY
        turn = gate.turn(time.monotonic())
        if turn is None:
            return BusyTime(self._silent_delay(gate).total_seconds(), is_silent=True)
        return BusyTime(min(turn * (len(gate.line) - half), LONGEST_BUSY), is_silent=False)

    def room(self, host: str) -> HostRoom:
        """Return how many calls may be under way to a host and in line for it, and how many are."""
        gate = self._gates.get(host)
        if gate is None:
            return HostRoom(self._places + self._line, 0)
        return HostRoom(self._places + self._line_of(gate), gate.in_flight + len(gate.line))

    def _line_of(self, gate: _Gate) -> int:
        """Return how many calls may be in line for a host: more than `waiting` if they do not wait for longer than `AHEAD`."""
        return max(self._line, min(gate.pace, LONGEST_LINE))

    def leave(self, host: str) -> None:
        """Give the place back. If a call waits in line, the first one gets it."""
        gate = self._gates[host]
        gate.note_end(time.monotonic())
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
        """Turn away all calls in line. Calls in flight continue and leave."""
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
        """Wait in line. Return whether a place was given before the bulkhead closed."""
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
        """Return the delay of a call that finds no room: one turn after the call turned away before it.

        Without a known pace the delay starts at 1 s and doubles with every further `in_flight` + `waiting` calls turned
        away.
        """
        turn = gate.turn(time.monotonic())
        gate.turned_away += 1
        if turn is not None:
            return min(max(gate.turned_away * timedelta(seconds=turn), SHORTEST_DELAY), LONGEST_DELAY)
        return self._silent_delay(gate)

    def _silent_delay(self, gate: _Gate) -> timedelta:
        housefuls = max(gate.turned_away - 1, 0) // (self._places + self._line)
        return min(FIRST_DELAY * 2 ** min(housefuls, 6), LONGEST_DELAY)
