"""Tags: words by which objects are found.

A dead letter has built-in tags that say why it died, and own tags from the target or function that failed it.
"""

import re
from collections.abc import Iterable
from typing import cast

TAG = re.compile(r"[^\x00-\x20,]{1,64}")
OWN_LIMIT = 10
"""The most tags of its own that a failure may bring."""


def is_tag(word: object) -> bool:
    """Return whether `word` can be a tag. Half a surrogate pair, which no database stores, is not printable either."""
    return isinstance(word, str) and TAG.fullmatch(word) is not None and word.isprintable()


def own_tags(given: object) -> tuple[str, ...]:
    """Return the words of `given` that can be tags, each once, up to the limit.

    Other words are left out: an attempt that has ended is buried as it asked, even if a tag is misspelled.
    """
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        return ()
    words = dict.fromkeys(word for word in cast("Iterable[object]", given) if isinstance(word, str) and is_tag(word))
    return tuple(words)[:OWN_LIMIT]
