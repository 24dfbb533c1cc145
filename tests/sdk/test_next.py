"""`job.next`: when a job fires, by its declaration; and the options that say so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai import Horai, Invalid, Misfire
from horai.testing import Harness
from horai.time import misfire
from horai.time.overlap import Overlap
from horai.time.schedule import CronSchedule

AFTER = datetime(2026, 3, 28, 12, tzinfo=UTC)
NOWHERE = "postgresql://127.0.0.1:1/none"


def application() -> Horai:
    return Horai("shop", database_url=NOWHERE)


async def test_a_job_knows_its_next_fires_without_a_database():
    app = application()

    @app.job(cron="30 2 * * *", timezone="Europe/Berlin")
    async def nightly() -> None: ...

    shifted, following = await nightly.next(2, after=AFTER)

    assert shifted.fire_time == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert shifted.note == "02:30 does not exist on 2026-03-29: the clock jumps from 02:00 to 03:00"
    assert shifted.local.isoformat() == "2026-03-29T03:00:00+02:00"
    assert (following.local.isoformat(), following.note) == ("2026-03-30T02:30:00+02:00", None)
    assert len(await nightly.next(after=AFTER)) == 10


def test_the_same_without_await():
    app = application()

    @app.job(every="1h")
    def hourly() -> None: ...

    assert [fire.fire_time.hour for fire in hourly.sync.next(3, after=AFTER)] == [13, 14, 15]


@pytest.mark.usefixtures("horai_server")
async def test_without_a_time_it_is_now_by_the_clock_of_the_database():
    app = Horai("shop")

    @app.job(every="1d")
    async def daily() -> None: ...

    async with Harness(app, start="2031-05-05T08:00:00Z") as time:
        assert [fire.fire_time.day for fire in await daily.next(2)] == [6, 7]
        await time.advance("1d")
        assert [fire.fire_time.day for fire in await daily.next(2)] == [7, 8]


async def test_a_job_on_demand_has_no_fires():
    app = application()

    @app.job
    async def charge() -> None: ...

    assert await charge.next(5, after=AFTER) == []


@pytest.mark.parametrize(
    ("count", "after", "words"),
    [(0, AFTER, "count"), (1_001, AFTER, "count"), (1, datetime(2026, 1, 1), "after: has no UTC offset")],  # noqa: DTZ001
)
async def test_next_refuses_an_invalid_count_or_a_time_without_an_offset(count: int, after: datetime, words: str):
    app = application()

    @app.job(every="1h")
    async def hourly() -> None: ...

    with pytest.raises(Invalid, match=words):
        await hourly.next(count, after=after)


def declared(app: Horai, **options: Any) -> Any:
    @app.job(**options)
    async def work() -> None: ...

    return work.declaration


def test_every_option_about_time_reaches_the_document():
    document = declared(
        application(),
        cron="0 30 2 * * ?",
        dialect="quartz",
        timezone="Europe/Berlin",
        dst={"gap": "skip"},
        calendar=("12-25", "2026-12-31"),
        start_at=datetime(2026, 1, 1, tzinfo=UTC),
        end_at=datetime(2027, 1, 1, 2, tzinfo=UTC),
        jitter=timedelta(minutes=5),
        misfire=Misfire("all", max_catchup=10, window="6h"),
        misfire_after=30,
        overlap="queue",
    ).document

    assert {name: document[name] for name in document if name not in {"name", "target"}} == {
        "cron": "0 30 2 * * ?",
        "dialect": "quartz",
        "timezone": "Europe/Berlin",
        "dst": {"gap": "skip"},
        "calendar": ["12-25", "2026-12-31"],
        "startAt": datetime(2026, 1, 1, tzinfo=UTC),
        "endAt": datetime(2027, 1, 1, 2, tzinfo=UTC),
        "jitter": "5m",
        "misfire": {"policy": "all", "maxCatchup": 10, "window": "6h"},
        "misfireAfter": "30s",
        "overlap": "queue",
    }


def test_the_options_come_to_what_the_server_reads():
    timing = declared(application(), cron="0 9 * * *", overlap="skip", misfire="all", jitter="1m").timing

    assert timing.schedule == CronSchedule("0 9 * * *")
    assert timing.overlap is Overlap.skip
    assert timing.misfire == misfire.MisfireRule(misfire.Policy.all)
    assert timing.jitter == timedelta(minutes=1)


def test_an_interval_has_an_anchor_or_counts_from_the_end_of_a_run():
    anchored = declared(application(), every="1d", anchor=datetime(2026, 1, 1, 9, tzinfo=UTC))
    patient = declared(application(), every=600, every_from="finish")

    assert anchored.timing.next_after(AFTER) == datetime(2026, 3, 29, 9, tzinfo=UTC)
    assert patient.timing.after_finish == timedelta(minutes=10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cron": "0 9 * * *", "every": "1h"}, "every: cannot be combined with cron"),
        ({"every": "1h", "start_at": datetime(2026, 1, 1)}, "start_at: must be a datetime with a UTC offset"),  # noqa: DTZ001
        ({"every": "1h", "anchor": "2026-01-01T00:00:00Z"}, "anchor: must be a datetime with a UTC offset"),
        ({"every": "1h", "calendar": "12-25"}, "calendar: must be a list, not a string"),
        ({"cron": "0 9 * * *", "misfire": Misfire("once", max_catchup=3)}, "maxCatchup"),
        ({"jitter": "5m"}, "jitter: is only accepted together with cron or every"),
        ({"cron": "0 9 * * *", "calendar": ["2026-02-30"]}, "calendar"),
    ],
)
def test_an_option_that_is_wrong_is_refused_where_it_is_declared(options: dict[str, Any], words: str):
    with pytest.raises(Invalid, match=words):
        declared(application(), **options)


@pytest.mark.usefixtures("horai_server")
async def test_a_declared_job_stays_unchanged_when_it_is_declared_again():
    app = Horai("shop")
    options = {"start_at": AFTER, "calendar": ["12-25"], "misfire": Misfire("all", window="1h"), "overlap": "skip"}
    declared(app, every="1h", jitter=90, **options)

    async with Harness(app, start=AFTER):
        assert (await app.declare()).unchanged == ("work",)
