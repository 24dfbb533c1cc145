"""The flags that say when: those of a job, and of a preview."""

from typing import Annotated, Any

from horai.cli.errors import BadUsage
from horai.cli.flags import flag, words

Text = str | None

Cron = Annotated[Text, flag("--cron", about="5 fields, or Quartz with 6 or 7.", metavar="EXPRESSION")]
Dialect = Annotated[Text, flag("--dialect", about="Of the cron: vixie or quartz (by its fields).", metavar="DIALECT")]
Every = Annotated[Text, flag("--every", about="A fixed pace, such as 10m.", metavar="DURATION")]
EveryFrom = Annotated[
    Text, flag("--every-from", about="anchor (the pace is fixed), or finish: after each run.", metavar="WHAT")
]
Anchor = Annotated[Text, flag("--anchor", about="An instant that the pace goes through.", metavar="TIME")]
Timezone = Annotated[Text, flag("--timezone", about="IANA zone of cron and calendar (UTC).", metavar="ZONE")]
DstGap = Annotated[Text, flag("--dst-gap", about="Times that do not exist: shift (default) or skip.", metavar="WORD")]
DstOverlap = Annotated[
    Text, flag("--dst-overlap", about="Times that come twice: first (default), last or both.", metavar="WORD")
]
Calendar = Annotated[
    list[str] | None,
    flag("--calendar", about="Excluded: 2026-12-25, 12-25, 2026-12-24/2027-01-02; repeatable.", metavar="DATES"),
]
StartAt = Annotated[Text, flag("--start-at", about="No slot before, such as 2026-11-15T09:00:00Z.", metavar="TIME")]
EndAt = Annotated[Text, flag("--end-at", about="No slot after.", metavar="TIME")]
Jitter = Annotated[Text, flag("--jitter", about="Run up to so long after its slots.", metavar="DURATION")]
Misfire = Annotated[Text, flag("--misfire", about="Late slots: skip, once (default) or all.", metavar="POLICY")]
MaxCatchup = Annotated[int | None, flag("--max-catchup", about="Of all late slots the newest N.", metavar="N")]
CatchupWindow = Annotated[Text, flag("--catchup-window", about="No late slot from further back.", metavar="DURATION")]
MisfireAfter = Annotated[Text, flag("--misfire-after", about="How late is late (60s).", metavar="DURATION")]
Overlap = Annotated[
    Text, flag("--overlap", about="Beside a run: allow (default), skip, queue or replace.", metavar="POLICY")
]

Refresh = Annotated[
    Text, flag("--refresh", about="A refresh job: its entities run again after this window.", metavar="WINDOW")
]
RefreshLimit = Annotated[int | None, flag("--refresh-limit", about="Entities loaded at a time (1000).", metavar="N")]
RunOnAdd = Annotated[bool | None, flag("--run-on-add", about="A new entity runs at once.")]


def given(**members: Any) -> dict[str, Any]:
    """Those that were."""
    return {name: value for name, value in members.items() if value is not None}


def dates(calendar: list[str] | None) -> list[str] | None:
    """The excluded dates."""
    return words(calendar) or None


def misfire_of(policy: str | None, max_catchup: int | None, window: str | None) -> Any:
    """A policy by its name, or with its bounds."""
    bounds = given(maxCatchup=max_catchup, window=window)
    if bounds and policy is None:
        raise BadUsage("--max-catchup and --catchup-window need a policy.", "Add --misfire all.")
    return {"policy": policy, **bounds} if bounds else policy
