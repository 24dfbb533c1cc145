"""Settings of a node that runs its job once for each item of a list, and the rules of its items.

All functions are pure. The list is the result of a node before it, the results of a map before it, or a member of the
payload of the run.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec

from horai.core.validation import Validation
from horai.text import Hint, Wrong

ITEMS_LIMIT = 100_000
"""The most items of one map."""
OPEN_LIMIT = 3_000
"""The most items of one map that have an instance and have not ended. The others are made when these end."""
MEMBER_LIMIT = 200
ALL = "all"
_PERCENT = re.compile(r"(\d{1,3})%")

AllowedFailures: TypeAlias = int | str
"""A number of items, a percentage such as "10%", or "all"."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MapSettings:
    """A valid map. Exactly one of `over` (a node) and `over_payload` (a member of the payload; "": all of it) is set."""

    over: str | None = None
    over_payload: str | None = None
    max_concurrency: int | None = None
    allow_failures: AllowedFailures = 0
    flatten: bool = False
    """The list is one of lists, and the items are their elements."""

    @property
    def most_open(self) -> int:
        """Return how many items may have an instance that has not ended."""
        return min(self.max_concurrency or OPEN_LIMIT, OPEN_LIMIT)

    def allowed_failures(self, total: int) -> int:
        """Return how many of `total` items may fail; a percentage is rounded down."""
        if isinstance(self.allow_failures, int):
            return self.allow_failures
        return total if self.allow_failures == ALL else total * int(self.allow_failures[:-1]) // 100

    @property
    def document(self) -> dict[str, Any]:
        """Return the settings as in REST, without those that are not set."""
        given = {
            "over": self.over,
            "overPayload": self.over_payload,
            "maxConcurrency": self.max_concurrency,
            "allowFailures": self.allow_failures or None,
            "flatten": self.flatten or None,
        }
        return {name: value for name, value in given.items() if value is not None}


def stored_map(text: str | None) -> MapSettings | None:
    """Return settings that were stored as JSON text."""
    return None if text is None else read_map(msgspec.json.decode(text), Validation(), "map")


def read_map(given: Mapping[str, Any], faults: Validation, field: str) -> MapSettings:
    """Return the settings of a document; add every fault to `faults`."""
    over, member = given.get("over"), given.get("overPayload")
    if (over is None) == (member is None):
        faults.add(field, Wrong.MAP_SOURCE())
    if member is not None and len(str(member)) > MEMBER_LIMIT:
        faults.add(f"{field}.overPayload", Wrong.TOO_LONG(most=MEMBER_LIMIT))
    most = given.get("maxConcurrency")
    if most is not None and not 1 <= most <= ITEMS_LIMIT:
        faults.add(f"{field}.maxConcurrency", Wrong.NOT_BETWEEN(low=1, high=ITEMS_LIMIT))
    allowed = given.get("allowFailures")
    if allowed is not None and not _may_fail(allowed):
        faults.add(f"{field}.allowFailures", Wrong.MAP_FAILURES(value=str(allowed)[:40]), Hint.WRITE_FAILURES())
        allowed = None
    return MapSettings(
        None if over is None else str(over),
        None if member is None else str(member),
        most,
        0 if allowed is None else allowed,
        bool(given.get("flatten")),
    )


def _may_fail(allowed: object) -> bool:
    if isinstance(allowed, int):
        return not isinstance(allowed, bool) and 0 <= allowed <= ITEMS_LIMIT
    percent = _PERCENT.fullmatch(str(allowed))
    return allowed == ALL or (percent is not None and int(percent[1]) <= 100)


def items_in(text: str | None) -> list[msgspec.Raw] | None:
    """Return the items of a list, not parsed; None if the text is not that of a list."""
    return None if text is None else _read(text, list[msgspec.Raw])


def items_in_payload(payload: str | None, member: str) -> list[msgspec.Raw] | None:
    """Return the items of the list in a member of a payload, or of the payload itself; None if there is no list."""
    if not member or payload is None:
        return items_in(payload)
    found = (_read(payload, dict[str, msgspec.Raw]) or {}).get(member)
    return None if found is None else items_in(bytes(found).decode())


def flattened(lists: Iterable[msgspec.Raw]) -> list[msgspec.Raw] | None:
    """Return the elements of lists in order, those of null left out; None if another value is among them."""
    found: list[msgspec.Raw] = []
    for each in lists:
        text = item_text(each)
        items = list[msgspec.Raw]() if text is None else items_in(text)
        if items is None:
            return None
        found += items
    return found


def item_text(item: msgspec.Raw) -> str | None:
    """Return the JSON text of an item; None for null."""
    text = bytes(item).decode()
    return None if text == "null" else text


def _read(text: str, kind: type[T]) -> T | None:
    """Return JSON of this type; None for any other text. A result is what a target sent: it may be anything."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
