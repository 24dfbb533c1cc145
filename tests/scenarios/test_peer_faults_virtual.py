"""Applications over a change of the clock and over excluded dates: every slot runs once, at its time on the wall."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from timeline import HOUR, MINUTE, SECOND, timeline

from horai import Horai

HarnessMaker = Callable[..., Any]


def utc(day: str, *times: str) -> list[datetime]:
    return [datetime.fromisoformat(f"{day}T{time}+00:00") for time in times]


async def test_nomad_5410_the_gap_makes_one_row_not_thousands(horai_server: None):
    """Looked at each second around the gap, in which two o'clock does not exist."""
    async with timeline(datetime(2019, 3, 10, 6, 30, tzinfo=UTC)) as time:
        await time.job(cron="0 2 * * *", timezone="America/New_York")
        (gap,) = utc("2019-03-10", "07:00:00")
        node = time.node()
        await time.live(node, gap - 30 * SECOND)
        for _ in range(90):
            await time.pass_by(SECOND)
            await node.trigger.step(time.now)
        await time.live(node, gap + 90 * MINUTE)

        assert await time.slots() == [gap]
        assert await time.coming() == [gap + 23 * HOUR]


async def test_prefect_7461_no_slot_is_doubled_after_the_clock_is_set_back(horai_harness: HarnessMaker):
    app = Horai("ledger")

    @app.job(cron="0 9 * * *", timezone="Europe/London")
    async def daily() -> None: ...

    @app.job(cron="0 9 * * SUN", timezone="Europe/London")
    async def weekly() -> None: ...

    async with horai_harness(app, start="2022-10-26T12:00:00+01:00") as time:
        await time.advance("10d")

        fires = [fired.fire_time for fired in time.fired(daily)]
        assert fires[2:5] == [
            *utc("2022-10-29", "08:00:00"),
            *utc("2022-10-30", "09:00:00"),
            *utc("2022-10-31", "09:00:00"),
        ]
        assert len({fire.date() for fire in fires}) == len(fires) == 10
        assert [fired.fire_time for fired in time.fired(weekly)] == utc("2022-10-30", "09:00:00")


async def test_meteor_synced_cron_152_the_repeated_hour_does_not_trigger_without_pause(horai_harness: HarnessMaker):
    app = Horai("ledger")

    @app.job(cron="30 2 * * *", timezone="Europe/Berlin")
    async def nightly() -> None: ...

    @app.job(cron="*/15 * * * *", timezone="Europe/Berlin")
    async def often() -> None: ...

    start = datetime(2024, 10, 27, tzinfo=UTC)
    async with horai_harness(app, start=start) as time:
        await time.advance("3h")

        assert [fired.fire_time for fired in time.fired(nightly)] == utc("2024-10-27", "00:30:00")
        assert [fired.fire_time for fired in time.fired(often)] == [
            start + quarter * timedelta(minutes=15) for quarter in range(1, 13)
        ]


async def test_quartznet_751_the_preview_knows_the_excluded_dates(horai_harness: HarnessMaker):
    """They are dates of the job's own zone: 23:30 in UTC is the next day in Tokyo."""
    app = Horai("ledger")

    @app.job(cron="30 8 * * *", timezone="Asia/Tokyo", calendar=["2026-12-25", "12-31/01-02"])
    async def daily() -> None: ...

    async with horai_harness(app, start="2026-12-20T12:00:00+09:00") as time:
        promised = [fire.fire_time for fire in await daily.next(20)]
        await time.advance("30d")
        fired = [fired.fire_time for fired in time.fired(daily)]

    local = [fire.astimezone(ZoneInfo("Asia/Tokyo")) for fire in fired]
    assert fired[:20] == promised
    assert {fire.day for fire in local if fire.month == 12} == {21, 22, 23, 24, 26, 27, 28, 29, 30}
    assert [fire.day for fire in local if fire.month == 1][:2] == [3, 4]
    assert utc("2026-12-23", "23:30:00")[0] in fired
    assert utc("2026-12-24", "23:30:00")[0] not in fired


async def test_quartznet_1665_an_excluded_day_is_excluded_from_its_first_to_its_last_second(
    horai_harness: HarnessMaker,
):
    app = Horai("ledger")
    excluded: dict[str, Any] = {"timezone": "America/New_York", "calendar": ["2026-07-04"]}

    async def fire() -> None: ...

    first = app.job(fire, name="first", cron="0 0 * * *", **excluded)
    last = app.job(fire, name="last", cron="59 59 23 * * ?", **excluded)
    hourly = app.job(fire, name="hourly", every="1h", **excluded)
    async with horai_harness(app, start="2026-07-03T12:00:00-04:00") as time:
        await time.advance("2d")

        local = {
            job.name: [fired.fire_time.astimezone(ZoneInfo("America/New_York")) for fired in time.fired(job)]
            for job in (first, last, hourly)
        }
    assert [f"{fire:%d %T}" for fire in local["first"]] == ["05 00:00:00"]
    assert [f"{fire:%d %T}" for fire in local["last"]] == ["03 23:59:59"]
    assert {fire.day for fire in local["hourly"]} == {3, 5}
    assert next(f"{fire:%d %T}" for fire in local["hourly"] if fire.day == 5) == "05 00:00:00"


async def test_xxl_job_3432_an_outage_does_not_move_a_fixed_rate(horai_harness: HarnessMaker):
    """Every hour at ten past; down from half past nine to half past eleven."""
    app = Horai("ledger")

    @app.job(every="1h", anchor=datetime(2026, 3, 4, 0, 10, tzinfo=UTC))
    async def hourly() -> None: ...

    async with horai_harness(app, start="2026-03-04T09:00:00Z") as time:
        await time.advance("30m")
        await time.outage("2h")
        await time.advance("1h")

        assert [fired.fire_time for fired in time.fired(hourly)] == utc(
            "2026-03-04", "09:10:00", "11:10:00", "12:10:00"
        )
