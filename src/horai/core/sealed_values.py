"""Values of encrypted jobs as the database stores them: the JSON text of an envelope, in a json or a text column.

An envelope is bound to the tenant, the name of the job and the column, not to the instance: slots, replays and backfills
copy payloads inside the database. Every value of an encrypted job is sealed, also one that looks like an envelope itself,
and no value of another job is opened. So a payload is never mistaken for an envelope.

A payload of a job with search paths travels with the digests of its values at these paths, as the member `d` of its
envelope, to the function that stores it. Stored are the envelope without them, and the digests in an index of their own.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from horai.core.encryption import Envelope, EnvelopeBroken, Place, is_envelope
from horai.core.masking import HIDDEN

HIDDEN_JSON = json.dumps(HIDDEN)
"""The JSON text of a value that the caller may not see, or that cannot be opened."""


DIGESTS = "d"


class StoredPayload(NamedTuple):
    """The payload of a job with search paths as it is stored, and the JSON text of its digests by path.

    A payload that was copied from another instance or from the job has no digests.
    """

    text: str | None
    digests: str | None


class SealedColumn(StrEnum):
    """The columns of values that encrypted jobs seal."""

    PAYLOAD = "payload"
    RESULT = "result"
    ERROR = "error"
    NOTE = "note"


def place_of_value(job: str, column: SealedColumn) -> Place:
    """Return the place of a value of an encrypted job."""
    return ("job", job, column.value)


def place_of_search(job: str, path: str) -> Place:
    """Return the place of the digests of an encrypted job at one search path."""
    return ("job", job, "search", path)


def place_of_call(job: str) -> Place:
    """Return the place of the digests of an encrypted job's arguments, by which its unique calls are known."""
    return ("job", job, "call")


def with_digests(envelope: Envelope, digests: Mapping[str, str | None]) -> str:
    """Return an envelope with the digests of its payload by search path, None for a path without a value."""
    return json.dumps({**envelope, DIGESTS: digests}, separators=(",", ":"))


def parted(text: str | None) -> StoredPayload:
    """Return a payload as it is stored, apart from its digests."""
    if text is None:
        return StoredPayload(None, None)
    envelope = json.loads(text)
    digests = envelope.pop(DIGESTS, None)
    if digests is None:
        return StoredPayload(text, None)
    return StoredPayload(envelope_text(envelope), json.dumps(digests, separators=(",", ":")))


def envelope_text(envelope: Envelope) -> str:
    """Return an envelope as a column stores it."""
    return json.dumps(envelope, separators=(",", ":"))


def envelope_in(text: str) -> Envelope:
    """Return the envelope of a stored text. Raises `EnvelopeBroken` if it is not one."""
    try:
        found = json.loads(text)
    except ValueError:
        raise EnvelopeBroken("it is not an envelope") from None
    if not is_envelope(found):
        raise EnvelopeBroken("it is not an envelope")
    return found


def is_sealed(text: str) -> bool:
    """Return whether a stored text is an envelope."""
    try:
        envelope_in(text)
    except EnvelopeBroken:
        return False
    return True
