"""`horai forecast`: the number of fires over time, and the peaks."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import console, fields, print_json, say, table
from horai.cli.views import Document, Pairs, instant

app = new_app()

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
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Forecast the number of fires, and suggest jitter for the peaks."""
    answer = client_of(server, api_key).call("GET", f"{path_of('forecast')}?hours={hours}")
    if as_json:
        print_json(answer)
    else:
        _print(json.loads(answer))


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


def summary(shown: Document) -> Pairs:
    """Return the figures of the whole forecast."""
    peak = shown["peak"]
    return [
        ("from", instant(shown["from"])),
        ("jobs", f"{shown['jobs']:,} on {shown['schedules']:,} schedules"),
        ("fires", f"{shown['total']:,} in {shown['minutes'] // 60} h"),
        ("average", f"{shown['average']:,.10g} a minute"),
        ("peak", f"{peak['fires']:,} at {instant(peak['at'])}" if peak else ""),
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
