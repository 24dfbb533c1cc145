"""The times for which a tenant or a job keeps its finished instances and dead letters.

The time of the job holds, then that of its tenant, then that of the process. A dead letter is kept at least as long as
its instance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from horai.core.validation import Validation
from horai.text import Hint, Wrong
from horai.time.durations import format_duration, parse_duration

SHORTEST, LONGEST = timedelta(days=1), timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class KeepTimes:
    """The times to keep rows of a tenant or a job. None: the time that holds without it."""

    history: timedelta | None = None
    dead_letters: timedelta | None = None

    def document(self) -> dict[str, str | None]:
        """Return the times by their public names, as people write them."""
        return {"keepHistory": _text(self.history), "keepDeadLetters": _text(self.dead_letters)}


NOT_SET = KeepTimes()


def read_keep_times(document: Mapping[str, Any], faults: Validation) -> KeepTimes:
    """Return the times of a document. Add a fault for each that is wrong."""
    history, letters = _read(document, "keepHistory", faults), _read(document, "keepDeadLetters", faults)
    if history is not None and letters is not None and letters < history:
        faults.add("keepDeadLetters", Wrong.SHORTER_THAN(least="keepHistory"), Hint.KEEP_LETTERS_LONGER())
    return KeepTimes(history, letters)


def amended_keep_times(known: KeepTimes, change: Mapping[str, Any]) -> KeepTimes:
    """Return the times with the fields of `change`; null removes one. Raise `Invalid` with every wrong field."""
    faults = Validation()
    times = read_keep_times({**known.document(), **change}, faults)
    faults.raise_if_any()
    return times


def _read(document: Mapping[str, Any], field: str, faults: Validation) -> timedelta | None:
    text = document.get(field)
    if text is None:
        return None
    wrong = len(faults.errors)
    time = faults.reading(field, lambda: parse_duration(text), None)
    if len(faults.errors) == wrong and (time is None or not SHORTEST <= time <= LONGEST):
        low, high = format_duration(SHORTEST), format_duration(LONGEST)
        faults.add(field, Wrong.NOT_BETWEEN(low=low, high=high), Hint.WRITE_KEEP_TIME())
    return time


def _text(time: timedelta | None) -> str | None:
    return None if time is None else format_duration(time)
