"""Values of encrypted jobs as the database stores them: the JSON text of an envelope, in a json or a text column.

An envelope is bound to the tenant, the name of the job and the column, not to the instance: slots, replays and backfills
copy payloads inside the database. Every value of an encrypted job is sealed, also one that looks like an envelope itself,
and no value of another job is opened. So a payload is never mistaken for an envelope.
"""

import json
from enum import StrEnum

from horai.core.encryption import Envelope, EnvelopeBroken, Place, is_envelope
from horai.core.masking import HIDDEN

HIDDEN_JSON = json.dumps(HIDDEN)
"""The JSON text of a value that the caller may not see, or that cannot be opened."""


class SealedColumn(StrEnum):
    """The columns of values that encrypted jobs seal."""

    PAYLOAD = "payload"
    RESULT = "result"
    ERROR = "error"
    NOTE = "note"


def place_of_value(job: str, column: SealedColumn) -> Place:
    """Return the place of a value of an encrypted job."""
    return ("job", job, column.value)


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
