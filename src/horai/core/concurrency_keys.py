"""The option `concurrency_key` of a call: at most n instances of the job with the same key run at once, in all processes.

n is `concurrencyPerKey` of the job, 1 if it has none. Keys of different jobs are different keys.
"""

from collections.abc import Mapping
from typing import Any

from horai.core.errors import Invalid
from horai.core.jsontext import JsonError, check_text
from horai.core.limits import KEY_LIMIT
from horai.core.validation import Validation
from horai.text import Wrong, told_by

MOST_PER_KEY = 1_000
PER_KEY = "concurrencyPerKey"
"""The field of a job that says how many instances of a key run at once."""


def check_concurrency_key(key: str | None, field: str = "concurrencyKey") -> str | None:
    """Return the key; None if there is none. Raises `Invalid` for one that is empty, too long or cannot be stored."""
    if key is None:
        return None
    if not 0 < len(key) <= KEY_LIMIT:
        raise Invalid.field(field, Wrong.LENGTH(most=KEY_LIMIT))
    try:
        return check_text(key)
    except JsonError as error:
        raise Invalid.field(field, told_by(error)) from error


def places_of(document: Mapping[str, Any]) -> int:
    """Return how many instances of a key of this job run at once."""
    return document.get(PER_KEY) or 1


def check_places(document: Mapping[str, Any], faults: Validation) -> None:
    """Add a fault if a job would run fewer than 1 or more than `MOST_PER_KEY` instances of a key at once."""
    given: object = document.get(PER_KEY)
    if given is None:
        return
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MOST_PER_KEY:
        faults.add(PER_KEY, Wrong.NOT_BETWEEN(low=1, high=MOST_PER_KEY))
