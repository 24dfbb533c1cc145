"""Words of a filter, as they are written in queries and bodies."""

from horai.core.errors import Invalid
from horai.core.states import State, filter_words, states_named


def states_of(words: str) -> frozenset[State]:
    """The states that are named, by commas; `Invalid` for a word that is none."""
    states: set[State] = set()
    for word in words.split(","):
        named = states_named(word.strip())
        if named is None:
            raise Invalid.field("state", f"{word[:60]!r} is no state", f"Known: {', '.join(filter_words())}.")
        states |= named
    return frozenset(states)
