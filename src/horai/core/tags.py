"""Tags: words that things are found by. A dead letter has those that say why it died, and those of whoever let it die."""

import re
from collections.abc import Iterable
from typing import cast

TAG = re.compile(r"[^\x00-\x20,]{1,64}")
OWN_LIMIT = 10
"""How many tags of its own a failure may bring."""


def is_tag(word: object) -> bool:
    """Whether it can be one. Half a surrogate pair, which no database holds, is not printable either."""
    return isinstance(word, str) and TAG.fullmatch(word) is not None and word.isprintable()


def own_tags(given: object) -> tuple[str, ...]:
    """Those of `given` that can be tags, each once, up to the limit.

    What is none is left out: an attempt that has ended is buried as it asked, however badly it spells.
    """
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        return ()
    words = dict.fromkeys(word for word in cast("Iterable[object]", given) if isinstance(word, str) and is_tag(word))
    return tuple(words)[:OWN_LIMIT]
