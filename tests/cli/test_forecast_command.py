"""`horai forecast`, against a server."""

import json
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from harness import HoraiProcess
from terminal import Terminal

from horai.cli.commands.forecast import BAR, bar, bars, hot_row, schedule_of, summary, what_if_summary

NIGHTLY = 70
ZONE = "Pacific/Marquesas"
"""Half an hour off the full one, so that no other test's jobs are in the same minute."""

SPOT = {
    "at": "2026-07-02T00:00:00Z",
    "fires": 60_100,
    "times": 423.2,
    "schedules": [
        {"schedule": {"cron": "0 0 * * *", "timezone": "UTC"}, "jobs": 50_000, "fires": 50_000},
        {"schedule": {"every": "1d", "timezone": "UTC"}, "jobs": 9_000, "fires": 9_000},
        {"schedule": {"cron": "0 2 * * *", "timezone": "Europe/Berlin"}, "jobs": 1_000, "fires": 1_000},
    ],
    "concerned": {"schedules": 3, "jobs": 60_000, "fires": 60_000},
    "suggestedJitter": "30m",
    "peakWithJitter": 2_100,
}
OUTLOOK = {
    "from": "2026-07-01T12:00:00Z",
    "minutes": 180,
    "total": 1_300,
    "perMinute": [*([0] * 60), *([10] * 60), 700, *([0] * 59)],
    "peak": {"at": "2026-07-01T14:00:00Z", "fires": 700},
    "average": 7.222,
    "schedules": 12,
    "jobs": 1_234_567,
    "hotSpots": [],
    "highestMeasured": {"starts": 1_200, "at": "2026-06-30T07:00:00Z", "days": 2},
    "note": None,
    "computedAt": "2026-07-01T11:59:30Z",
}


def _ask(server: HoraiProcess, method: str, path: str, body: Any = None) -> None:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{server.base}/api/v1/jobs{path}", data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request) as response:
        assert response.status < 300


@contextmanager
def nightly_jobs(server: HoraiProcess, many: int) -> Generator[None]:
    """Jobs that all fire at midnight; the server is for other tests, too, so they go again."""
    names = [f"nightly-{number}" for number in range(many)]
    target = {"type": "http", "url": "http://127.0.0.1:9/"}
    for name in names:
        _ask(server, "POST", "", {"name": name, "target": target, "cron": "0 0 * * *", "timezone": ZONE})
    yield
    for name in names:
        _ask(server, "DELETE", f"/{name}")


def test_the_forecast_shows_bars_and_the_hot_spot_with_what_would_level_it(
    horai: Terminal, server: HoraiProcess
) -> None:
    with nightly_jobs(server, NIGHTLY):
        shown = horai("forecast")
        answer = horai("forecast", "--json").json

    assert (shown.code, shown.err) == (0, "")
    assert (answer["minutes"], len(answer["perMinute"])) == (24 * 60, 24 * 60)
    (spot,) = [spot for spot in answer["hotSpots"] if "T09:30:00" in spot["at"]]
    assert spot["fires"] >= NIGHTLY
    assert f"{spot['suggestedJitter']}: then at most {spot['peakWithJitter']}" in shown.out
    assert f"cron 0 0 * * * ({ZONE})" in shown.out
    assert "█" * BAR in shown.out
    drawn = [line for line in shown.out.splitlines() if line[:3] in {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}]
    assert len(drawn) == 24


def test_a_time_beyond_a_week_is_bad_usage(alone: Terminal) -> None:
    refused = alone("forecast", "--hours", "169")

    assert (refused.code, refused.out) == (2, "")
    assert "--hours" in refused.err
    assert "168" in refused.err


def test_each_line_has_the_fires_of_an_hour_and_its_busiest_minute() -> None:
    assert [line[:3] for line in bars(OUTLOOK)] == [
        ("Wed 07-01 12:00Z", "0", "0"),
        ("Wed 07-01 13:00Z", "600", "10"),
        ("Wed 07-01 14:00Z", "700", "700"),
    ]
    assert [line[3] for line in bars(OUTLOOK)] == ["", bar(600, 700), "█" * BAR]


def test_a_week_takes_a_line_for_six_hours() -> None:
    week = OUTLOOK | {"minutes": 10_080, "perMinute": [1] * 10_080}

    lines = list(bars(week))

    assert len(lines) == 28
    assert {line[1] for line in lines} == {"360"}
    assert [line[0] for line in lines][:2] == ["Wed 07-01 12:00Z", "Wed 07-01 18:00Z"]


def test_a_bar_is_to_the_longest_as_its_value_and_anything_but_nothing_is_seen() -> None:
    assert bar(0, 100) == ""
    assert bar(1, 1_000_000) == "▏"
    assert bar(50, 100) == "█" * (BAR // 2)
    assert bar(100, 100) == "█" * BAR


def test_a_hot_spot_names_two_schedules_and_counts_the_rest() -> None:
    assert hot_row(SPOT) == (
        "2026-07-02T00:00:00Z",
        "60,100",
        "423.2×",
        "cron 0 0 * * *, every 1d and 1 more",
        "30m: then at most 2,100",
    )
    assert hot_row(SPOT | {"suggestedJitter": None, "peakWithJitter": None})[-1] == "none"


def test_the_figures_of_the_whole_time_stand_above() -> None:
    assert dict(summary(OUTLOOK)) == {
        "from": "2026-07-01T12:00:00Z",
        "jobs": "1,234,567 on 12 schedules",
        "fires": "1,300 in 3 h",
        "average": "7.222 a minute",
        "peak": "700 at 2026-07-01T14:00:00Z",
        "measured": "at most 1,200 starts a minute in the last 2 days, at 2026-06-30T07:00:00Z",
        "computed": "2026-07-01T11:59:30Z",
    }


# What if

WHAT_IF = {
    "schedule": {"cron": "0 9 * * *", "timezone": "Europe/Berlin"},
    "jobs": 5_000,
    "from": "2026-07-01T12:00:00Z",
    "minutes": 1_440,
    "total": 5_000,
    "perMinute": [],
    "addedPerMinute": [],
    "peakBefore": None,
    "peakAfter": {"at": "2026-07-02T07:00:00Z", "fires": 5_000},
    "highestMeasured": None,
    "minutesAboveBefore": None,
    "minutesAboveAfter": None,
    "computedAt": "2026-07-01T11:59:30Z",
}


def test_hypothetical_jobs_are_added_to_the_bars_and_raise_the_peak(horai: Terminal) -> None:
    flags = ("--what-if", "20 7 * * *", "--timezone", ZONE, "--jobs", "50000")
    shown = horai("forecast", *flags)
    answer = horai("forecast", *flags, "--json").json

    assert (shown.code, shown.err) == (0, "")
    assert max(answer["addedPerMinute"]) == 50_000
    assert answer["peakAfter"]["fires"] >= 50_000
    assert "T16:50:00" in answer["peakAfter"]["at"]
    assert f"50,000 × cron 20 7 * * * ({ZONE})" in shown.out
    assert f"peak after   {answer['peakAfter']['fires']:,} at" in shown.out
    assert "█" * BAR in shown.out


def test_an_invalid_hypothetical_schedule_is_refused_in_the_words_of_the_server(horai: Terminal) -> None:
    refused = horai("forecast", "--what-if", "61 * * * *")

    assert (refused.code, refused.out) == (1, "")
    assert "61" in refused.err


def test_flags_of_hypothetical_jobs_without_what_if_are_bad_usage(alone: Terminal) -> None:
    for flag in (("--jobs", "5"), ("--timezone", "Europe/Berlin"), ("--jitter", "5m")):
        refused = alone("forecast", *flag)

        assert (refused.code, refused.out) == (2, "")
        assert "--what-if" in refused.err


def test_an_interval_begins_with_the_word_every() -> None:
    assert schedule_of("every 10m") == {"every": "10m"}
    assert schedule_of(" 0 9 * * * ") == {"cron": "0 9 * * *"}
    assert schedule_of("@daily") == {"cron": "@daily"}


def test_the_figures_of_hypothetical_jobs_stand_above_with_the_peak_before_and_after() -> None:
    assert dict(what_if_summary(WHAT_IF)) == {
        "from": "2026-07-01T12:00:00Z",
        "what if": "5,000 × cron 0 9 * * * (Europe/Berlin)",
        "adds": "5,000 fires in 24 h",
        "peak before": "",
        "peak after": "5,000 at 2026-07-02T07:00:00Z",
        "measured": "no start yet",
        "above it": "",
        "computed": "2026-07-01T11:59:30Z",
    }


def test_the_minutes_above_the_highest_measured_number_of_starts_are_counted_without_and_with_the_jobs() -> None:
    above = WHAT_IF | OUTLOOK | {"minutesAboveBefore": 0, "minutesAboveAfter": 1}

    shown = dict(what_if_summary(above))

    assert shown["above it"] == "1 min (before: 0 min)"
    assert shown["measured"].startswith("at most 1,200 starts a minute in the last 2 days")
