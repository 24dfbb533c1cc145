"""Settings of a node that asks for a condition again and again until a deadline. All functions are pure.

A target says that the condition is not met by a result whose first member is `horai:wait` (core/node_results.py): the
attempt is given back and the instance is due again after `every`. The instance expires at the deadline.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from horai.core.validation import Validation
from horai.text import Hint, Wrong
from horai.time.durations import format_duration, parse_duration

SHORTEST, LONGEST = timedelta(seconds=1), timedelta(days=1)
"""The least and the most time between two questions."""
LONGEST_WAIT = timedelta(days=365)
ON_DEADLINE = ("fail", "skip")


@dataclass(frozen=True, slots=True)
class SensorSettings:
    """A valid sensor: it asks each `every`, at most for `deadline` from its start on."""

    every: timedelta
    deadline: timedelta
    skips: bool = False
    """The node is skipped at the deadline; otherwise it is dead."""

    @property
    def document(self) -> dict[str, Any]:
        """Return the settings as in REST."""
        times = {"every": format_duration(self.every), "deadline": format_duration(self.deadline)}
        return {**times, "onDeadline": "skip" if self.skips else "fail"}


def stored_sensor(text: str | None) -> SensorSettings | None:
    """Return settings that were stored as JSON text."""
    return None if text is None else read_sensor(msgspec.json.decode(text), Validation(), "sensor")


def read_sensor(given: Mapping[str, Any], faults: Validation, field: str) -> SensorSettings:
    """Return the settings of a document; add every fault to `faults`."""
    every = _duration(given.get("every"), faults, f"{field}.every", (SHORTEST, LONGEST))
    deadline = _duration(given.get("deadline"), faults, f"{field}.deadline", (SHORTEST, LONGEST_WAIT))
    end = given.get("onDeadline") or "fail"
    if end not in ON_DEADLINE:
        faults.add(f"{field}.onDeadline", Wrong.NOT_ONE_OF(value=str(end)[:40], allowed=", ".join(ON_DEADLINE)))
    return SensorSettings(every, deadline, end == "skip")


def _duration(given: object, faults: Validation, field: str, bounds: tuple[timedelta, timedelta]) -> timedelta:
    low, high = bounds
    try:
        found = parse_duration(str(given))
    except ValueError:
        found = None
    if found is None or not low <= found <= high:
        faults.add(field, Wrong.NOT_BETWEEN(low=format_duration(low), high=format_duration(high)), Hint.WRITE_SENSOR())
        return low
    return found
