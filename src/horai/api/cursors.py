"""Cursors of pages: positions in lists as opaque text."""

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from horai.core.calls import millis
from horai.core.errors import Invalid
from horai.db.instance_queries import LAST
from horai.db.key_history import FIRST, NO_SEQ, Link
from horai.text import Hint, Wrong

_AT_AND_ID = re.compile(r"(\d{1,18})\.(\d{1,19})")
_LINK = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,10})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class HasId(Protocol):
    """A row of a list in the order of ids."""

    @property
    def id(self) -> int: ...


def next_cursor(rows: Sequence[HasId], limit: int) -> str | None:
    """Return the cursor of the page after these rows, in a list by id. It is None on the last page."""
    return page_cursor(str(rows[-1].id)) if len(rows) == limit else None


def job_cursor(cursor: str | None) -> int:
    """Decode the cursor of a list by id, such as jobs or queues. Raises `Invalid` for any other text."""
    if cursor is None:
        return 0
    text = decode_cursor(cursor)
    if not re.fullmatch(r"\d{1,18}", text):
        raise _bad_cursor()
    return int(text)


def cursor_after(at: datetime, id_: int) -> str:
    """Return the cursor of the page after this row, in a list by time and id."""
    return page_cursor(f"{_micros(at)}.{id_}")


def instance_cursor(cursor: str | None) -> tuple[datetime, int]:
    """Decode the cursor of a page of instances or dead letters. Raises `Invalid` for any other text."""
    if cursor is None:
        return LAST
    match = _AT_AND_ID.fullmatch(decode_cursor(cursor))
    if match is None or int(match[2]) > LAST[1]:
        raise _bad_cursor()
    return _instant(match[1]), int(match[2])


def cursor_after_link(link: Link) -> str:
    """Return the cursor of the page after this link of a key's history."""
    return page_cursor(f"{_micros(link.at)}.{link.instance_id}.{link.seq}")


def chain_cursor(cursor: str | None) -> Link:
    """Decode the cursor of a page of a key's history: the page begins after this link."""
    if cursor is None:
        return FIRST
    match = _LINK.fullmatch(decode_cursor(cursor))
    if match is None or int(match[3]) > NO_SEQ:
        raise _bad_cursor()
    return Link(_instant(match[1]), int(match[2]), int(match[3]))


def without_nul(text: str) -> str:
    """Refuse a cursor with a NUL character, which PostgreSQL cannot store."""
    if "\x00" in text:
        raise _bad_cursor()
    return text


def page_cursor(text: str) -> str:
    """Encode a position as a cursor."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, encoding: str = "ascii") -> str:
    """Decode a cursor that `page_cursor` made. Raises `Invalid` for any other text."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode(encoding)
    except (binascii.Error, ValueError) as error:
        raise _bad_cursor() from error


def _micros(instant: datetime) -> int:
    return millis(instant) * 1000 + instant.microsecond % 1000


def _instant(micros: str) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=int(micros))
    except OverflowError as error:
        raise _bad_cursor() from error


def _bad_cursor() -> Invalid:
    return Invalid.field("cursor", Wrong.NOT_OUR_CURSOR(), Hint.USE_NEXT_CURSOR())
