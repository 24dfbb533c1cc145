"""The flags of a schedule, for a job and for a preview."""

from typing import Annotated, Any

from horai.cli.errors import BadUsage
from horai.cli.flags import flag, words

Text = str | None

Cron = Annotated[Text, flag("--cron", about="5 fields, or Quartz with 6 or 7.", metavar="EXPRESSION")]
Dialect = Annotated[
    Text, flag("--dialect", about="Dialect of the cron: vixie or quartz (by its number of fields).", metavar="DIALECT")
]
Every = Annotated[Text, flag("--every", about="A fixed interval, such as 10m.", metavar="DURATION")]
EveryFrom = Annotated[
    Text, flag("--every-from", about="anchor (fixed times, the default), or finish (after each run).", metavar="WHAT")
]
Anchor = Annotated[Text, flag("--anchor", about="An instant that the interval counts from.", metavar="TIME")]
Timezone = Annotated[Text, flag("--timezone", about="IANA zone of cron and calendar (UTC).", metavar="ZONE")]
DstGap = Annotated[Text, flag("--dst-gap", about="Times that do not exist: shift (default) or skip.", metavar="WORD")]
DstOverlap = Annotated[
    Text, flag("--dst-overlap", about="Times that occur twice: first (default), last or both.", metavar="WORD")
]
Calendar = Annotated[
    list[str] | None,
    flag(
        "--calendar",
        about="Excluded dates: 2026-12-25, 12-25, 2026-12-24/2027-01-02, repeatable; or the name of a calendar.",
        metavar="DATES|NAME",
    ),
]
OnHoliday = Annotated[
    Text,
    flag(
        "--on-holiday", about="Slots on days off of the named calendar: skip (default), before, after.", metavar="WORD"
    ),
]
StartAt = Annotated[Text, flag("--start-at", about="No slot before, such as 2026-11-15T09:00:00Z.", metavar="TIME")]
EndAt = Annotated[Text, flag("--end-at", about="No slot after.", metavar="TIME")]
Jitter = Annotated[Text, flag("--jitter", about="Longest delay of a run after its slot.", metavar="DURATION")]
Misfire = Annotated[Text, flag("--misfire", about="Late slots: skip, once (default) or all.", metavar="POLICY")]
MaxCatchup = Annotated[
    int | None, flag("--max-catchup", about="With --misfire all: run the newest N late slots.", metavar="N")
]
CatchupWindow = Annotated[
    Text, flag("--catchup-window", about="Skip late slots that are older than this.", metavar="DURATION")
]
MisfireAfter = Annotated[
    Text, flag("--misfire-after", about="Delay after which a slot is late (60s).", metavar="DURATION")
]
Overlap = Annotated[
    Text,
    flag("--overlap", about="While another run is active: allow (default), skip, queue or replace.", metavar="POLICY"),
]

Refresh = Annotated[
    Text, flag("--refresh", about="A refresh job: its entities run again after this window.", metavar="WINDOW")
]
RefreshLimit = Annotated[int | None, flag("--refresh-limit", about="Entities loaded at a time (1000).", metavar="N")]
RunOnAdd = Annotated[bool | None, flag("--run-on-add", about="A new entity runs at once.")]


def given(**members: Any) -> dict[str, Any]:
    """Return the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def calendar_of(calendar: list[str] | None, on_holiday: str | None) -> Any:
    """Return the excluded dates, or the named calendar; None without either. Dates have no letters."""
    given_words = words(calendar)
    if len(given_words) == 1 and any(letter.isalpha() for letter in given_words[0]):
        return {"name": given_words[0], **given(onHoliday=on_holiday)}
    if on_holiday is not None:
        raise BadUsage("--on-holiday needs a named calendar.", "Add --calendar NAME.")
    return given_words or None


def misfire_of(policy: str | None, max_catchup: int | None, window: str | None) -> Any:
    """Return a misfire policy: its name, or an object with its limits."""
    bounds = given(maxCatchup=max_catchup, window=window)
    if bounds and policy is None:
        raise BadUsage("--max-catchup and --catchup-window need a policy.", "Add --misfire all.")
    return {"policy": policy, **bounds} if bounds else policy
