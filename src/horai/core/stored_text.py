"""Text as it is stored: error messages without control characters, and the mark of a result that could not be kept."""

import re

from horai.core.limits import MESSAGE_LIMIT

TRUNCATED = '{"$horai":"resultTruncated"}'
"""Stored in place of a result that could not be kept: over 64 kB, or not storable as JSON."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HALF_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean_text(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return `text` fit for a text column and a terminal, cut to `limit` characters.

    Control characters are removed, except tab and line feed.
    """
    return _HALF_SURROGATE.sub("\ufffd", _CONTROL.sub("", text[: 2 * limit]))[:limit]
