"""`horai schedules`: preview."""

from horai.cli import time_flags
from horai.cli.client import client_of, path_of
from horai.cli.commands.jobs_next import Count, From, print_fires
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server
from horai.cli.lazy import new_app
from horai.cli.time_flags import given

app = new_app("Schedules: preview the fire times of a schedule.")


@app.callback()
def schedules() -> None:
    """Schedules: preview the fire times of a schedule."""


@app.command()
def preview(
    cron: time_flags.Cron = None,
    dialect: time_flags.Dialect = None,
    every: time_flags.Every = None,
    every_from: time_flags.EveryFrom = None,
    anchor: time_flags.Anchor = None,
    timezone: time_flags.Timezone = None,
    dst_gap: time_flags.DstGap = None,
    dst_overlap: time_flags.DstOverlap = None,
    calendar: time_flags.Calendar = None,
    on_holiday: time_flags.OnHoliday = None,
    start_at: time_flags.StartAt = None,
    end_at: time_flags.EndAt = None,
    count: Count = None,
    from_: From = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Preview the fires of a job with this schedule. Nothing is saved."""
    wish = given(cron=cron, dialect=dialect, every=every, everyFrom=every_from, anchor=anchor, timezone=timezone)
    wish |= given(calendar=time_flags.calendar_of(calendar, on_holiday), startAt=start_at, endAt=end_at, count=count)
    wish |= given(dst=given(gap=dst_gap, overlap=dst_overlap) or None) | given(**{"from": from_})
    print_fires(client_of(server, api_key).call("POST", path_of("schedules", "preview"), wish), as_json)
