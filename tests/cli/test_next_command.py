"""`horai jobs next`, `horai schedules preview`, and the flags that say when."""

from terminal import Terminal

SPRING = ("--from", "2026-03-28T00:00:00+01:00", "--count", "2")
BERLIN = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
SHIFTED = "02:30 does not exist on 2026-03-29: the clock jumps from 02:00 to 03:00"


def lines(out: str) -> list[list[str]]:
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in out.splitlines()]


def test_a_preview_needs_no_job(horai: Terminal) -> None:
    shown = horai("schedules", "preview", *BERLIN, *SPRING)

    assert (shown.code, shown.err) == (0, "")
    assert lines(shown.out) == [
        ["FIRE TIME", "LOCAL", "NOTE"],
        ["2026-03-28T01:30:00Z", "2026-03-28T02:30:00+01:00"],
        ["2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00", SHIFTED],
    ]


def test_a_preview_takes_the_flags_that_say_when(horai: Terminal) -> None:
    told = horai(
        *("schedules", "preview", *BERLIN, "--dst-gap", "skip", "--dst-overlap", "both", "--dialect", "vixie"),
        *("--calendar", "03-28,03-30", "--calendar", "2026-03-31/2026-04-02", "--json", "--count", "1"),
        *("--start-at", "2026-03-28T00:00:00Z", "--end-at", "2026-05-01T00:00:00Z", "--from", "2026-03-01T00:00:00Z"),
    ).json
    every = horai("schedules", "preview", "--every", "1d", "--anchor", "2026-01-01T09:00:00Z", "--count", "1", "--json")
    finish = horai("schedules", "preview", "--every", "10m", "--every-from", "finish")

    assert [fire["local"] for fire in told["fires"]] == ["2026-04-03T02:30:00+02:00"]
    assert every.json["fires"][0]["fireTime"].endswith("T09:00:00Z")
    assert "then 10m after each run has ended" in finish.out


def test_a_preview_that_makes_no_sense_says_why(horai: Terminal) -> None:
    refused = horai("schedules", "preview", "--cron", "0 0 30 2 *")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: cron: cron has no next fire time")
    assert horai("schedules", "preview", "--every", "1h", "--count", "0").code == 2


def test_next_shows_the_fires_of_a_job_and_says_that_it_is_paused(horai: Terminal) -> None:
    horai("jobs", "create", "nightly-in-spring", *BERLIN)
    promised = horai("schedules", "preview", *BERLIN, *SPRING)

    assert horai("jobs", "next", "nightly-in-spring", *SPRING).out == promised.out
    horai("jobs", "pause", "nightly-in-spring")
    paused = horai("jobs", "next", "nightly-in-spring", *SPRING)
    assert (paused.out, paused.err) == (promised.out, "the job is paused\n")
    as_json = horai("jobs", "next", "nightly-in-spring", *SPRING, "--json").json
    assert [fire["fireTime"] for fire in as_json["fires"]] == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"]
    assert horai("jobs", "delete", "nightly-in-spring", "--yes").code == 0  # other files ask for all that is paused


def test_next_shows_when_a_jitter_lets_it_run(horai: Terminal) -> None:
    horai("jobs", "create", "spread", "--cron", "0 0 * * *", "--jitter", "1h")

    heading, row = lines(horai("jobs", "next", "spread", "--count", "1").out)

    assert heading == ["FIRE TIME", "LOCAL", "RUNS AT", "NOTE"]
    assert row[0].endswith("T00:00:00Z")
    assert row[2] > row[0]


def test_a_job_without_a_schedule_has_none(horai: Terminal) -> None:
    horai("jobs", "create", "on-demand")

    shown = horai("jobs", "next", "on-demand")

    assert (shown.code, shown.out) == (0, "")
    assert shown.err == "None.\nthe job has no schedule: it runs only on request\n"
    assert horai("jobs", "next", "there-is-no-such-job").code == 1


def test_a_job_is_created_with_every_flag_that_says_when(horai: Terminal) -> None:
    made = horai(
        *("jobs", "create", "timed", *BERLIN, "--dialect", "vixie", "--dst-gap", "skip", "--calendar", "12-25"),
        *("--start-at", "2026-01-01T00:00:00Z", "--end-at", "2999-01-01T00:00:00Z", "--jitter", "5m"),
        *("--misfire", "all", "--max-catchup", "7", "--catchup-window", "6h", "--misfire-after", "2m"),
        *("--overlap", "queue", "--json"),
    ).json

    assert made["dialect"] == "vixie"
    assert made["dst"] == {"gap": "skip"}
    assert made["calendar"] == ["12-25"]
    assert (made["startAt"][:4], made["endAt"][:4]) == ("2026", "2999")
    assert (made["jitter"], made["misfireAfter"], made["overlap"]) == ("5m", "2m", "queue")
    assert made["misfire"] == {"policy": "all", "maxCatchup": 7, "window": "6h"}
    shown = horai("jobs", "show", "timed").out
    for line in (["excluded", "12-25"], ["misfire", "policy all, maxCatchup 7, window 6h"], ["overlap", "queue"]):
        assert line in lines(shown)
    patient = horai("jobs", "create", "patient", "--every", "10m", "--every-from", "finish", "--json").json
    assert (patient["every"], patient["everyFrom"]) == ("10m", "finish")
    assert horai("jobs", "delete", "patient", "--yes").code == 0, "the forecast of other tests would name it"
    simple = horai("jobs", "create", "simple", "--every", "10m", "--misfire", "skip", "--json").json
    assert simple["misfire"] == "skip"


def test_bounds_without_a_policy_are_bad_usage(horai: Terminal) -> None:
    assert horai("jobs", "create", "bounded", "--every", "1h", "--max-catchup", "3").failed_with(
        2, "error: --max-catchup and --catchup-window need a policy.", "hint: Add --misfire all."
    )
