"""The text of a payload in a request."""

import msgspec

from horai.core.errors import TooLarge
from horai.core.limits import PAYLOAD_LIMIT
from horai.text import Hint, Refused


def payload_text(raw: msgspec.Raw | None, field: str) -> str | None:
    """Return the exact JSON text of a payload. Raises `TooLarge` above `PAYLOAD_LIMIT` bytes."""
    text = bytes(raw) if raw is not None else b"null"
    if len(text) > PAYLOAD_LIMIT:
        raise TooLarge(Refused.FIELD_TOO_LARGE(field=field, most=PAYLOAD_LIMIT), Hint.KEEP_ELSEWHERE())
    return None if text == b"null" else text.decode("utf-8")
