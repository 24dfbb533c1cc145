"""Editions of the zone rules that a test makes up: each zone an offset and the instants at which it changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import pack

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a zone: `offset` ahead of UTC, and from each instant of `changes` (RFC 3339) on another one."""

    offset: timedelta
    changes: Sequence[tuple[str, timedelta]] = ()

    def tzif(self) -> bytes:
        """As a file of version 2, which is what `zoneinfo` reads (RFC 8536); the last offset holds for ever."""
        offsets = [self.offset, *(offset for _, offset in self.changes)]
        instants = [int(datetime.fromisoformat(at).timestamp()) for at, _ in self.changes]
        empty = _header(0, 1, 1) + pack(">lBB", 0, 0, 0) + b"\0"
        return b"".join(
            [
                empty,
                _header(len(instants), len(offsets), 4),
                pack(f">{len(instants)}q", *instants),
                bytes(range(1, len(offsets))),
                *(pack(">lBB", int(offset.total_seconds()), 0, 0) for offset in offsets),
                b"LMT\0",
                b"\n\n",
            ]
        )


def _header(changes: int, offsets: int, letters: int) -> bytes:
    return b"TZif2" + bytes(15) + pack(">6l", 0, 0, 0, changes, offsets, letters)


class Edition:
    """Made-up rules, to be used with `zones.use`."""

    def __init__(self, version: str, clocks: Mapping[str, Clock]) -> None:
        self.version = version
        self._files = {"UTC": Clock(timedelta(0)).tzif(), **{name: clock.tzif() for name, clock in clocks.items()}}
        self.opened: list[str] = []

    def names(self) -> frozenset[str]:
        return frozenset(self._files)

    def read(self, name: str) -> bytes:
        self.opened.append(name)
        return self._files[name]


def at(text: str) -> datetime:
    """An instant of UTC, such as `2027-03-28 09:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
