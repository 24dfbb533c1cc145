"""Titles of errors."""

from horai.text.phrase import Phrasebook


class Title(Phrasebook):
    """Titles by the codes of problems."""

    SCH_500_INTERNAL = "Internal error"
    SCH_422_INVALID = "Invalid request"
    SCH_400_IDEMPOTENCY_KEY_REQUIRED = "Idempotency-Key required"
    SCH_400_MALFORMED = "Malformed request"
    SCH_401_UNAUTHENTICATED = "Key required"
    SCH_403_FORBIDDEN = "Forbidden"
    SCH_404_NOT_FOUND = "Not found"
    SCH_408_TOO_SLOW = "Too slow"
    SCH_409_DUPLICATE = "Duplicate"
    SCH_409_STALE = "Stale outcome"
    SCH_409_FINAL = "Already final"
    SCH_409_CONFLICT = "Conflict"
    SCH_412_PRECONDITION = "Precondition failed"
    SCH_413_TOO_LARGE = "Too large"
    SCH_429_RETRY_LIMITED = "Limit reached"
    SCH_431_HEADERS_TOO_LARGE = "Headers too large"
    SCH_503_BUSY = "Server busy"
    SCH_503_DISPATCHER_DOWN = "No live dispatcher"
    SCH_503_TOO_MANY_READERS = "Too many readers"
    SCH_503_KEY_UNAVAILABLE = "Encryption key unavailable"
    SCH_503_DATABASE_UNAVAILABLE = "Database unavailable"
    SCH_503_ARCHIVE_UNAVAILABLE = "Archive unavailable"
    SCH_503_PROVIDER_UNAVAILABLE = "Identity provider unavailable"
