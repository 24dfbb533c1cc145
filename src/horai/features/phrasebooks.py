"""All phrasebooks: the sentences that a translation must cover."""

from collections.abc import Iterator

from horai.core.calendar_notes import CalendarNotes
from horai.core.upcoming import FireNotes
from horai.features.registry import FEATURES
from horai.text import Action, Degraded, Hint, Misshapen, Refused, Title, Wrong
from horai.text.phrase import Joined, Phrasebook
from horai.time.cron.phrases import CronFault, CronField, Mismatch, Month, Nth, Weekday

BOOKS: tuple[type[Phrasebook], ...] = (
    Joined,
    *(book for feature in FEATURES for book in feature.phrases),
    Mismatch,
    Nth,
    Month,
    Weekday,
    FireNotes,
    CalendarNotes,
    CronFault,
    CronField,
    Wrong,
    Misshapen,
    Refused,
    Degraded,
    Action,
    Hint,
    Title,
)


def every_phrase() -> Iterator[Phrasebook]:
    """Yield each sentence once."""
    for book in BOOKS:
        yield from book
