"""A hierarchical timing wheel: finds the keys that are due without checking the others.

Time is divided into ticks, and a tick number into digits of six bits. A key waits at the level of the highest digit in
which its tick differs from the current one, in the slot of that digit: level 0 holds the ticks of the current round,
level 1 the next rounds, and so on; the last level has as many slots as it needs. Advancing empties the slots that were
passed and distributes the slot that was entered over the levels below. The position of a key follows from its time and
the current tick alone, so that only its time is stored.
"""

from collections.abc import Hashable, Iterator
from datetime import timedelta
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

DIGIT_BITS = 6
TOP_LEVEL = 4
_DIGIT = (1 << DIGIT_BITS) - 1
_MICROSECOND = timedelta(microseconds=1)


class Wheel(Generic[Key]):
    """Keys, each with one time in microseconds. No key is returned early or twice, and none is lost.

    `tick` is the width of the finest slot; times stay exact with any width.
    """

    def __init__(self, tick: timedelta, now_us: int) -> None:
        if tick < _MICROSECOND:
            raise ValueError(f"a tick is at least a microsecond, not {tick}")
        self._tick_us = tick // _MICROSECOND
        self._now_us = now_us
        self._tick = now_us // self._tick_us
        self._times: dict[Key, int] = {}
        self._levels: list[dict[int, dict[Key, None]]] = [{} for _ in range(TOP_LEVEL + 1)]
        self._next_at: int | None = None
        """The earliest time; None if it is not known at the moment."""

    def __len__(self) -> int:
        return len(self._times)

    def put(self, key: Key, at_us: int) -> None:
        """Make `key` due at `at_us` and at no other time. A time that has passed is due at the next `advance`."""
        self.discard(key)
        if not self._times or (self._next_at is not None and at_us < self._next_at):
            self._next_at = at_us
        self._times[key] = at_us
        self._place(key, at_us)

    def discard(self, key: Key) -> None:
        """Remove `key`, if it is present."""
        at_us = self._times.pop(key, None)
        if at_us is None:
            return
        level, slot = self._whereabouts(at_us)
        keys = self._levels[level][slot]
        del keys[key]
        if not keys:
            del self._levels[level][slot]
        if at_us == self._next_at:
            self._next_at = None

    def at(self, key: Key) -> int | None:
        """Return when `key` is due; None if it is not present."""
        return self._times.get(key)

    def advance(self, now_us: int) -> list[Key]:
        """Advance to `now_us` and return all keys that are due by then, in order of time. Time never goes back."""
        self._now_us = max(self._now_us, now_us)
        touched = list(self._pass_to(self._now_us // self._tick_us))
        due = [key for key in touched if self._times[key] <= self._now_us]
        for key in touched:
            if self._times[key] > self._now_us:
                self._place(key, self._times[key])
        due.sort(key=self._times.__getitem__)
        for key in due:
            del self._times[key]
        if due:
            self._next_at = None
        return due

    def next_at(self) -> int | None:
        """Return the exact time of the earliest key; None if the wheel is empty."""
        if self._next_at is None and self._times:
            # Lower levels are earlier in time, and within a level, lower slots are.
            earliest = next(level for level in self._levels if level)
            self._next_at = min(map(self._times.__getitem__, earliest[min(earliest)]))
        return self._next_at

    def _pass_to(self, tick: int) -> Iterator[Key]:
        """Make `tick` the current one; remove and yield all keys of the slots that were passed or entered."""
        entered = self._level_of(tick)
        self._tick = tick
        for level in self._levels[:entered]:
            for keys in level.values():
                yield from keys
            level.clear()
        level, present = self._levels[entered], self._slot_of(entered, tick)
        for slot in [slot for slot in level if slot <= present]:
            yield from level.pop(slot)

    def _place(self, key: Key, at_us: int) -> None:
        level, slot = self._whereabouts(at_us)
        self._levels[level].setdefault(slot, {})[key] = None

    def _whereabouts(self, at_us: int) -> tuple[int, int]:
        """Return the level and the slot of a time; a time that has passed belongs to the current slot."""
        tick = max(at_us // self._tick_us, self._tick)
        level = self._level_of(tick)
        return level, self._slot_of(level, tick)

    def _level_of(self, tick: int) -> int:
        return min(max((tick ^ self._tick).bit_length() - 1, 0) // DIGIT_BITS, TOP_LEVEL)

    @staticmethod
    def _slot_of(level: int, tick: int) -> int:
        digits = tick >> level * DIGIT_BITS
        return digits if level == TOP_LEVEL else digits & _DIGIT
