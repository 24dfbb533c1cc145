"""`horai forecast`: the number of fires over time, and the peaks."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from horai.cli import time_flags
from horai.cli.client import client_of, path_of
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import console, fields, print_json, say, table
from horai.cli.time_flags import given
from horai.cli.views import Document, Pairs, instant

app = new_app()

WhatIf = Annotated[
    str | None,
    flag("--what-if", about="Add jobs with this cron, or 'every 10m'. Nothing is saved.", metavar="SCHEDULE"),
]
Jobs = Annotated[int | None, flag("--jobs", about="With --what-if: how many such jobs (1).", limits=(1, 10_000_000))]

LONGEST_BY_THE_HOUR = 48
SEVERAL_HOURS = 6
"""Hours per line of the chart if lines of one hour each would be too many."""
BAR = 40
COLUMNS = ("FROM", "FIRES", "BUSIEST MINUTE", "")
HOT_COLUMNS = ("HOT SPOT", "FIRES", "TIMES", "SCHEDULES", "SUGGESTED JITTER")
_EIGHTHS = " ▏▎▍▌▋▊▉"


@app.command()
def forecast(
    hours: Annotated[int, flag("--hours", about="Hours to look ahead: up to 168, a week.", limits=(1, 168))] = 24,
    what_if: WhatIf = None,
    timezone: time_flags.Timezone = None,
    jobs: Jobs = None,
    jitter: time_flags.Jitter = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Forecast the number of fires, and suggest jitter for the peaks."""
    wish = given(timezone=timezone, jobs=jobs, jitter=jitter)
    if what_if is None and wish:
        raise BadUsage(f"--{next(iter(wish))} describes hypothetical jobs.", 'Add --what-if "0 9 * * *".')
    path = path_of("forecast") if what_if is None else path_of("forecast", "what-if")
    query = given(hours=hours) | ({} if what_if is None else schedule_of(what_if) | wish)
    answer = client_of(server, api_key).call("GET", f"{path}?{urlencode(query)}")
    if as_json:
        print_json(answer)
    elif what_if is None:
        _print(json.loads(answer))
    else:
        _print_what_if(json.loads(answer))


def schedule_of(text: str) -> dict[str, str]:
    """Return the cron or the interval that `--what-if` gives; an interval begins with the word every."""
    word, _, rest = text.strip().partition(" ")
    return {"every": rest.strip()} if word == "every" else {"cron": text.strip()}


def _print(shown: Document) -> None:
    out = console()
    out.print(fields(summary(shown)))
    if shown["total"]:
        out.print()
        out.print(table(COLUMNS, bars(shown)))
    if shown["hotSpots"]:
        out.print()
        out.print(table(HOT_COLUMNS, map(hot_row, shown["hotSpots"])))
    if shown["note"]:
        say(shown["note"])


def _print_what_if(shown: Document) -> None:
    out = console()
    out.print(fields(what_if_summary(shown)))
    both = [old + new for old, new in zip(shown["perMinute"], shown["addedPerMinute"], strict=True)]
    if any(both):
        out.print()
        out.print(table(COLUMNS, bars({**shown, "perMinute": both})))


def what_if_summary(shown: Document) -> Pairs:
    """Return the figures of the hypothetical jobs, and the busiest minutes without and with them."""
    return [
        ("from", instant(shown["from"])),
        ("what if", f"{shown['jobs']:,} × {_schedule(shown['schedule'])}"),
        ("adds", f"{shown['total']:,} fires in {shown['minutes'] // 60} h"),
        ("peak before", _peak(shown["peakBefore"])),
        ("peak after", _peak(shown["peakAfter"])),
        ("measured", measured(shown)),
        ("above it", _above(shown)),
        ("computed", instant(shown["computedAt"])),
    ]


def _above(shown: Document) -> str:
    before, after = shown["minutesAboveBefore"], shown["minutesAboveAfter"]
    return "" if before is None else f"{after:,} min (before: {before:,} min)"


def measured(shown: Document) -> str:
    """Return the most starts per minute that the cluster has shown."""
    found = shown["highestMeasured"]
    if found is None:
        return "no start yet"
    return f"at most {found['starts']:,} starts a minute in the last {found['days']} days, at {instant(found['at'])}"


def _peak(peak: Document | None) -> str:
    return f"{peak['fires']:,} at {instant(peak['at'])}" if peak else ""


def summary(shown: Document) -> Pairs:
    """Return the figures of the whole forecast."""
    return [
        ("from", instant(shown["from"])),
        ("jobs", f"{shown['jobs']:,} on {shown['schedules']:,} schedules"),
        ("fires", f"{shown['total']:,} in {shown['minutes'] // 60} h"),
        ("average", f"{shown['average']:,.10g} a minute"),
        ("peak", _peak(shown["peak"])),
        ("measured", measured(shown)),
        ("computed", instant(shown["computedAt"])),
    ]


def bars(shown: Document) -> Iterator[tuple[str, ...]]:
    """Return the fires of each hour, or of several hours, as bars."""
    step = 60 if shown["minutes"] <= LONGEST_BY_THE_HOUR * 60 else SEVERAL_HOURS * 60
    start = datetime.fromisoformat(shown["from"]).astimezone(UTC)
    fires: Sequence[int] = shown["perMinute"]
    sums = [sum(fires[first : first + step]) for first in range(0, len(fires), step)]
    for number, total in enumerate(sums):
        begin = start + number * timedelta(minutes=step)
        most = max(fires[number * step : (number + 1) * step])
        yield f"{begin:%a %m-%d %H:%M}Z", f"{total:,}", f"{most:,}", bar(total, max(sums))


def bar(value: int, most: int) -> str:
    """Return a bar whose length is to `BAR` as `value` to `most`; any value above 0 is visible."""
    if not value:
        return ""
    whole, eighths = divmod(max(round(8 * BAR * value / most), 1), 8)
    return ("█" * whole + _EIGHTHS[eighths]).rstrip()


def hot_row(spot: Document) -> tuple[str, ...]:
    """Return a hot spot on one line, as in `HOT_COLUMNS`."""
    schedules, many = spot["schedules"], spot["concerned"]["schedules"]
    named = ", ".join(_schedule(one["schedule"]) for one in schedules[:2])
    rest = f" and {many - 2:,} more" if many > 2 else ""
    helps = spot["suggestedJitter"]
    advice = f"{helps}: then at most {spot['peakWithJitter']:,}" if helps else "none"
    return instant(spot["at"]), f"{spot['fires']:,}", f"{spot['times']:g}×", named + rest, advice


def _schedule(schedule: dict[str, Any]) -> str:
    when = f"cron {schedule['cron']}" if "cron" in schedule else f"every {schedule['every']}"
    return when if schedule["timezone"] == "UTC" else f"{when} ({schedule['timezone']})"
