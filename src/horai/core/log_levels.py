"""Levels of log lines, carried inside the stored message.

A line of a level other than INFO, and one that begins with the mark itself, is stored as the mark, the name of the level, a space and
the message. So a level takes the same way as its line through isolated processes, Ray, remote workers, seals and archives, and nodes of
other versions pass it on.
"""

import re
from typing import Final, Literal, NamedTuple, TypeAlias

LevelName: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

LEVELS: Final[tuple[LevelName, ...]] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
PLAIN: Final[LevelName] = "INFO"
MARK: Final = "\x1e"
"""The record separator of ASCII, which is not printable."""

_STORED = re.compile(rf"{MARK}({'|'.join(LEVELS)}) (.*)", re.DOTALL)


class LevelledText(NamedTuple):
    """A message and its level."""

    level: LevelName
    message: str


def level_named(level: str | int) -> LevelName:
    """Return the level of a name in any case, or of a number of the module `logging`. Raises ValueError for another name."""
    if isinstance(level, int):
        return LEVELS[min(max(level // 10 - 1, 0), len(LEVELS) - 1)]
    for known in LEVELS:
        if level.upper() == known:
            return known
    raise ValueError(f"{level!r} is not one of {', '.join(LEVELS)}")


def stored_line(message: str, level: LevelName = PLAIN) -> str:
    """Return the text to store for a message of this level. A message of another type becomes its text."""
    text = str(message)
    return text if level == PLAIN and not text.startswith(MARK) else f"{MARK}{level} {text}"


def line_of(stored: str) -> LevelledText:
    """Return the message and the level of a stored text. A text without a mark is a message of level INFO."""
    found = _STORED.fullmatch(stored)
    return LevelledText(PLAIN, stored) if found is None else LevelledText(level_named(found[1]), found[2])
