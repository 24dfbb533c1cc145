"""The errors users meet. Each says what happened to what, and where it helps, what to do.

    HoraiError
    ├── Invalid                  422  SCH_422_INVALID
    ├── IdempotencyKeyRequired   400  SCH_400_IDEMPOTENCY_KEY_REQUIRED
    ├── Forbidden                403  SCH_403_FORBIDDEN
    ├── NotFound                 404  SCH_404_NOT_FOUND
    ├── Duplicate                409  SCH_409_DUPLICATE
    ├── StaleOutcome             409  SCH_409_STALE
    ├── AlreadyFinal             409  SCH_409_FINAL
    ├── Conflict                 409  SCH_409_CONFLICT
    ├── PreconditionFailed       412  SCH_412_PRECONDITION
    ├── TooLarge                 413  SCH_413_TOO_LARGE
    ├── DispatcherDown           503  SCH_503_DISPATCHER_DOWN
    ├── TooManyReaders           503  SCH_503_TOO_MANY_READERS
    └── DatabaseUnavailable      503  SCH_503_DATABASE_UNAVAILABLE

They are translated once at each boundary: to problem+json in api/problems.py, to `error:` and `hint:` lines in cli/.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field; `field` is a dotted path such as `retry.base`.

    `position`: the index of the first character that is wrong, where its text has one.
    """

    field: str
    message: str
    position: int | None = None


class HoraiError(Exception):
    """A fault with a name, a status and, where there is one, a way out."""

    code = "SCH_500_INTERNAL"
    status = 500
    title = "Internal error"

    def __init__(
        self,
        detail: str,
        hint: str | None = None,
        errors: Sequence[FieldError] = (),
        extra: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.errors = tuple(errors)
        self.extra = dict(extra or {})


class Invalid(HoraiError):
    """The request cannot be understood or asks for what does not exist."""

    code = "SCH_422_INVALID"
    status = 422
    title = "Invalid request"

    @classmethod
    def field(cls, field: str, message: str, hint: str | None = None) -> "Invalid":
        """One wrong field."""
        return cls(f"{field}: {message}", hint, [FieldError(field, message)])


class IdempotencyKeyRequired(HoraiError):
    """A request with side effects came without its `Idempotency-Key`."""

    code = "SCH_400_IDEMPOTENCY_KEY_REQUIRED"
    status = 400
    title = "Idempotency-Key required"


class Forbidden(HoraiError):
    """The caller may not do this."""

    code = "SCH_403_FORBIDDEN"
    status = 403
    title = "Forbidden"


class NotFound(HoraiError):
    """No such object, or not one of this tenant's: the two are the same answer."""

    code = "SCH_404_NOT_FOUND"
    status = 404
    title = "Not found"


class Duplicate(HoraiError):
    """The first one stands; `extra` carries its id and state."""

    code = "SCH_409_DUPLICATE"
    status = 409
    title = "Duplicate"


class StaleOutcome(HoraiError):
    """An outcome came with an old fence: kept as a late result, the instance is unchanged."""

    code = "SCH_409_STALE"
    status = 409
    title = "Stale outcome"


class AlreadyFinal(HoraiError):
    """It is settled: a finished instance is not cancelled any more, a settled dead letter neither replayed nor discarded."""

    code = "SCH_409_FINAL"
    status = 409
    title = "Already final"


class Conflict(HoraiError):
    """What is asked for cannot be done as things are now; the hint says what has to happen first."""

    code = "SCH_409_CONFLICT"
    status = 409
    title = "Conflict"


class PreconditionFailed(HoraiError):
    """The object has changed since it was read."""

    code = "SCH_412_PRECONDITION"
    status = 412
    title = "Precondition failed"


class TooLarge(HoraiError):
    """The body is larger than this endpoint takes."""

    code = "SCH_413_TOO_LARGE"
    status = 413
    title = "Too large"


class DispatcherDown(HoraiError):
    """No live dispatcher would run it."""

    code = "SCH_503_DISPATCHER_DOWN"
    status = 503
    title = "No live dispatcher"


class TooManyReaders(HoraiError):
    """As many watch this server as it has room for, or it is about to stop."""

    code = "SCH_503_TOO_MANY_READERS"
    status = 503
    title = "Too many readers"


class DatabaseUnavailable(HoraiError):
    """The database does not answer, or cannot write."""

    code = "SCH_503_DATABASE_UNAVAILABLE"
    status = 503
    title = "Database unavailable"
