"""The errors that users see. Each says what happened to which object and, if it helps, what to do.

    HoraiError
    ├── Invalid                  422  SCH_422_INVALID
    ├── IdempotencyKeyRequired   400  SCH_400_IDEMPOTENCY_KEY_REQUIRED
    ├── Malformed                400  SCH_400_MALFORMED
    ├── Unauthenticated          401  SCH_401_UNAUTHENTICATED
    ├── Forbidden                403  SCH_403_FORBIDDEN
    ├── NotFound                 404  SCH_404_NOT_FOUND
    ├── TooSlow                  408  SCH_408_TOO_SLOW
    ├── Duplicate                409  SCH_409_DUPLICATE
    ├── StaleOutcome             409  SCH_409_STALE
    ├── AlreadyFinal             409  SCH_409_FINAL
    ├── Conflict                 409  SCH_409_CONFLICT
    ├── PreconditionFailed       412  SCH_412_PRECONDITION
    ├── TooLarge                 413  SCH_413_TOO_LARGE
    ├── RetryLimited             429  SCH_429_RETRY_LIMITED
    ├── HeadersTooLarge          431  SCH_431_HEADERS_TOO_LARGE
    ├── Busy                     503  SCH_503_BUSY
    ├── DispatcherDown           503  SCH_503_DISPATCHER_DOWN
    ├── TooManyReaders           503  SCH_503_TOO_MANY_READERS
    ├── DatabaseUnavailable      503  SCH_503_DATABASE_UNAVAILABLE
    ├── KeyUnavailable           503  SCH_503_KEY_UNAVAILABLE
    └── ProviderUnavailable      503  SCH_503_PROVIDER_UNAVAILABLE

Each boundary translates them once: api/problems.py to problem+json, cli/ to `error:` and `hint:` lines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from horai.text import Title, Wrong
from horai.text.phrase import Joined, Phrase


@dataclass(frozen=True, slots=True)
class FieldError:
    """The fault of one field; `field` is a dotted path such as `retry.base`.

    `position` is the index of the first wrong character, if the text of the field has one.
    """

    field: str
    message: str
    position: int | None = None


class HoraiError(Exception):
    """An error with a code, a status and, if there is one, a hint."""

    code = "SCH_500_INTERNAL"
    status = 500
    title: str = Title.SCH_500_INTERNAL()
    took_effect = False
    """True if the request has nevertheless written something, which is to be committed with its Idempotency-Key."""

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
        if hint:
            self.add_note(f"Hint: {hint}")  # a Python traceback prints it below the message


class Invalid(HoraiError):
    """The request cannot be understood, or asks for something that does not exist."""

    code = "SCH_422_INVALID"
    status = 422
    title = Title.SCH_422_INVALID()

    @classmethod
    def field(cls, field: str, message: str, hint: str | None = None) -> "Invalid":
        """Create an error for one wrong field."""
        return cls.fields([FieldError(field, message)], hint)

    @classmethod
    def fields(cls, errors: Sequence[FieldError], hint: str | None = None) -> "Invalid":
        """Create an error for several wrong fields; at least one."""
        return cls(Joined.BESIDES.all(_told(error) for error in errors), hint, errors)


def _told(error: FieldError) -> Phrase:
    return Wrong.FIELD(field=error.field, message=error.message)


class IdempotencyKeyRequired(HoraiError):
    """A request with side effects has no `Idempotency-Key`."""

    code = "SCH_400_IDEMPOTENCY_KEY_REQUIRED"
    status = 400
    title = Title.SCH_400_IDEMPOTENCY_KEY_REQUIRED()


class Malformed(HoraiError):
    """The request is not valid HTTP."""

    code = "SCH_400_MALFORMED"
    status = 400
    title = Title.SCH_400_MALFORMED()


class Unauthenticated(HoraiError):
    """The request has no key, or one that is not in force."""

    code = "SCH_401_UNAUTHENTICATED"
    status = 401
    title = Title.SCH_401_UNAUTHENTICATED()


class Forbidden(HoraiError):
    """The caller may not do this."""

    code = "SCH_403_FORBIDDEN"
    status = 403
    title = Title.SCH_403_FORBIDDEN()


class NotFound(HoraiError):
    """The object does not exist or belongs to another tenant; the response is the same for both."""

    code = "SCH_404_NOT_FOUND"
    status = 404
    title = Title.SCH_404_NOT_FOUND()


class TooSlow(HoraiError):
    """The client did not send its headers or its body in time."""

    code = "SCH_408_TOO_SLOW"
    status = 408
    title = Title.SCH_408_TOO_SLOW()


class Duplicate(HoraiError):
    """The object exists already, and the first one stays; `extra` carries its id and state."""

    code = "SCH_409_DUPLICATE"
    status = 409
    title = Title.SCH_409_DUPLICATE()


class StaleOutcome(HoraiError):
    """An outcome arrived with an old fence: it is stored as a late result, and the instance is unchanged."""

    code = "SCH_409_STALE"
    status = 409
    title = Title.SCH_409_STALE()


class AlreadyFinal(HoraiError):
    """A finished instance cannot be cancelled; a settled dead letter can be neither replayed nor discarded."""

    code = "SCH_409_FINAL"
    status = 409
    title = Title.SCH_409_FINAL()


class Conflict(HoraiError):
    """The request is impossible in the current state; the hint says what has to happen first."""

    code = "SCH_409_CONFLICT"
    status = 409
    title = Title.SCH_409_CONFLICT()


class PreconditionFailed(HoraiError):
    """The object has changed since it was read."""

    code = "SCH_412_PRECONDITION"
    status = 412
    title = Title.SCH_412_PRECONDITION()


class TooLarge(HoraiError):
    """The body is larger than this endpoint takes."""

    code = "SCH_413_TOO_LARGE"
    status = 413
    title = Title.SCH_413_TOO_LARGE()


class RetryLimited(HoraiError):
    """A limit of the tenant is reached; the header `Retry-After` says when to try again."""

    code = "SCH_429_RETRY_LIMITED"
    status = 429
    title = Title.SCH_429_RETRY_LIMITED()


class HeadersTooLarge(HoraiError):
    """The headers have more bytes or fields than the server reads."""

    code = "SCH_431_HEADERS_TOO_LARGE"
    status = 431
    title = Title.SCH_431_HEADERS_TOO_LARGE()


class Busy(HoraiError):
    """The server has reached its limit of connections or of body bytes in memory."""

    code = "SCH_503_BUSY"
    status = 503
    title = Title.SCH_503_BUSY()


class DispatcherDown(HoraiError):
    """No live dispatcher would run the instance."""

    code = "SCH_503_DISPATCHER_DOWN"
    status = 503
    title = Title.SCH_503_DISPATCHER_DOWN()


class TooManyReaders(HoraiError):
    """The server has reached its limit of readers, or is about to stop."""

    code = "SCH_503_TOO_MANY_READERS"
    status = 503
    title = Title.SCH_503_TOO_MANY_READERS()


class KeyUnavailable(HoraiError):
    """A sealed value cannot be opened: its data key was erased, or this process lacks the key that wraps it."""

    code = "SCH_503_KEY_UNAVAILABLE"
    status = 503
    title = Title.SCH_503_KEY_UNAVAILABLE()


class DatabaseUnavailable(HoraiError):
    """The database does not answer, or cannot write."""

    code = "SCH_503_DATABASE_UNAVAILABLE"
    status = 503
    title = Title.SCH_503_DATABASE_UNAVAILABLE()


class ProviderUnavailable(HoraiError):
    """The identity provider does not answer, or answers with something that is not OpenID Connect."""

    code = "SCH_503_PROVIDER_UNAVAILABLE"
    status = 503
    title = Title.SCH_503_PROVIDER_UNAVAILABLE()


class ArchiveUnavailable(HoraiError):
    """A file of the archive cannot be read by this server."""

    code = "SCH_503_ARCHIVE_UNAVAILABLE"
    status = 503
    title = Title.SCH_503_ARCHIVE_UNAVAILABLE()
