"""The fingerprint of a failure: a short name for "the same fault of the same job".

Ids, numbers, times and quoted values differ from one failure to the next; the words around them do not. So a
fingerprint is a digest of the job, the error code and the message without all such values.
"""

import hashlib
import re

LENGTH = 16
"""Hexadecimal digits: enough that two faults of one tenant do not collide by chance."""
WORDS_LIMIT = 1_000

_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_QUOTED = re.compile(r"(?<!\w)(['\"`])(?:(?!\1)[^\n])*\1")
"""Not after a letter: the apostrophe of "can't" does not open a quotation."""
_HEX = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,})\b")
_NUMBER = re.compile(r"\d+")
_SPACE = re.compile(r"\s+")


def fingerprint_of(job_id: int, code: str, message: str) -> str:
    """Return a digest that is equal for the same fault of a job, regardless of ids and numbers in its message."""
    said = f"{job_id}\n{code}\n{normalised(message)}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def normalised(message: str) -> str:
    """Return the message with its values replaced by placeholders."""
    for pattern, instead in ((_UUID, "<id>"), (_QUOTED, "<text>"), (_HEX, "<hex>"), (_NUMBER, "<n>"), (_SPACE, " ")):
        message = pattern.sub(instead, message)
    return message.strip()[:WORDS_LIMIT]
