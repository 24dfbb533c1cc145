"""What two failures have in common: a short name for "the same fault of the same job".

Ids, numbers, times and quoted values differ from one failure to the next; the words around them do not. So a fingerprint
is a digest of the job, the error code and the message with all such values taken out.
"""

import hashlib
import re

LENGTH = 16
"""Hexadecimal digits: two faults of one tenant do not meet by chance."""
WORDS_LIMIT = 1_000

_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_QUOTED = re.compile(r"(?<!\w)(['\"`])(?:(?!\1)[^\n])*\1")
"""Not after a letter: the apostrophe of "can't" opens nothing."""
_HEX = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,})\b")
_NUMBER = re.compile(r"\d+")
_SPACE = re.compile(r"\s+")


def fingerprint_of(job_id: int, code: str, message: str) -> str:
    """The same for the same fault of a job, whatever ids and numbers its message holds."""
    said = f"{job_id}\n{code}\n{normalised(message)}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def normalised(message: str) -> str:
    """The words of a message without its values."""
    for pattern, instead in ((_UUID, "<id>"), (_QUOTED, "<text>"), (_HEX, "<hex>"), (_NUMBER, "<n>"), (_SPACE, " ")):
        message = pattern.sub(instead, message)
    return message.strip()[:WORDS_LIMIT]
