"""All the books there are: who translates Horai finds every sentence here."""

from collections.abc import Iterator

from horai.core.coming import FireNotes
from horai.core.cron.phrases import CronFault, CronField, Mismatch, Month, Nth, Weekday
from horai.core.explain.phrases import AbsenceWords, RunWords, SlotWords, StateName
from horai.core.phrase import Joined, Phrasebook
from horai.core.wording import Degraded, Hint, Misshapen, Refused, Title, Wrong

BOOKS: tuple[type[Phrasebook], ...] = (
    Joined,
    RunWords,
    AbsenceWords,
    SlotWords,
    StateName,
    Mismatch,
    Nth,
    Month,
    Weekday,
    FireNotes,
    CronFault,
    CronField,
    Wrong,
    Misshapen,
    Refused,
    Degraded,
    Hint,
    Title,
)


def every_phrase() -> Iterator[Phrasebook]:
    """Each sentence once."""
    for book in BOOKS:
        yield from book
