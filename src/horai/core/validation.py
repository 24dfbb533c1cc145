"""The faults of a document, field by field."""

from collections.abc import Callable
from typing import TypeVar

from horai.core.errors import FieldError, Invalid
from horai.text import told_by
from horai.text.phrase import Phrase
from horai.time.cron import CronError

T = TypeVar("T")


class Validation:
    """A collection of faults, so that a form can show all of them at once."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.hint: Phrase | None = None

    def add(self, field: str, message: Phrase, hint: Phrase | None = None, position: int | None = None) -> None:
        """Add a fault; only the first hint is shown."""
        self.errors.append(FieldError(field, message, position))
        self.hint = self.hint or hint

    def reading(self, field: str, read: Callable[[], T], default: T) -> T:
        """Return the result of `read` for a field; if it raises ValueError, add a fault and return `default`."""
        try:
            return read()
        except CronError as error:
            self.add(field, told_by(error), error.hint, error.position)
        except ValueError as error:
            self.add(field, told_by(error))
        return default

    def raise_if_any(self) -> None:
        """Raise `Invalid` with every fault, if there are any."""
        if self.errors:
            raise Invalid.fields(self.errors, self.hint)
