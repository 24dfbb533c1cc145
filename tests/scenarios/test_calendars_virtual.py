"""Jobs that follow a named calendar, fired by the real trigger in a virtual time."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from horai import Horai, Invalid
from horai.testing import Harness
from scenarios.test_preview_holds import rest

SHANGHAI = ZoneInfo("Asia/Shanghai")
CN = {
    "holidays": [{"date": "2026-10-01/2026-10-07", "name": "National Day"}],
    "workdays": ["2026-09-27", "2026-10-10"],
}
START = "2026-09-30T12:00:00+08:00"


def local(fired: Any) -> list[str]:
    return [f"{each.fire_time.astimezone(SHANGHAI):%m-%d %H:%M}" for each in fired]


async def test_the_trigger_skips_and_moves_slots_as_next_has_promised_and_follows_a_change() -> None:
    app = Horai("payroll")

    async def pay() -> None: ...

    words = ("skip", "before", "after")
    jobs = {word: app.job(pay, name=f"daily-{word}", cron="0 9 * * *", timezone="Asia/Shanghai") for word in words}
    monthly = app.job(pay, name="monthly", cron="0 9 1,10 * *", timezone="Asia/Shanghai")
    async with Harness(app, start=START) as time, rest(time.database_url) as api:
        assert (await api("PUT", "/api/v1/calendars/cn", CN)).status == 201
        for word, job in jobs.items():
            use = {"calendar": {"name": "cn", "onHoliday": word}}
            assert (await api("PATCH", f"/api/v1/jobs/{job.name}", use)).status == 200
        use = {"calendar": {"name": "cn", "onHoliday": "after"}}
        assert (await api("PATCH", "/api/v1/jobs/monthly", use)).status == 200
        coming = (await api("GET", "/api/v1/jobs/monthly/next?count=2")).json["fires"]

        await time.advance("11d")

        working = ["10-08 09:00", "10-09 09:00", "10-10 09:00"]
        for job in jobs.values():
            assert local(time.fired(job)) == working
        assert local(time.fired(monthly)) == ["10-08 09:00", "10-10 09:00"]
        assert [fire["local"][5:16].replace("T", " ") for fire in coming] == local(time.fired(monthly))
        assert "National Day" in coming[0]["note"]

        assert (await api("PUT", "/api/v1/calendars/cn", {**CN, "holidays": ["2026-10-13"]})).status == 200
        await time.advance("3d")

        assert local(time.fired(jobs["skip"]))[3:] == ["10-12 09:00", "10-14 09:00"]
        explained = (await api("GET", "/api/v1/jobs/daily-skip/explain?at=2026-10-13T09:00")).json
        assert explained["why"].startswith("Its schedule has this time, but 2026-10-13 is a day off of the calendar cn")


async def test_slots_of_an_outage_are_caught_up_by_the_calendar() -> None:
    app = Horai("payroll")

    async def pay() -> None: ...

    job = app.job(pay, name="pay", cron="0 9 * * *", timezone="Asia/Shanghai", misfire="all")
    async with Harness(app, start=START) as time, rest(time.database_url) as api:
        assert (await api("PUT", "/api/v1/calendars/cn", CN)).status == 201
        assert (await api("PATCH", "/api/v1/jobs/pay", {"calendar": {"name": "cn"}})).status == 200

        await time.outage("10d")
        await time.advance("1h")

        assert local(time.fired(job)) == ["10-08 09:00", "10-09 09:00", "10-10 09:00"]


async def test_code_declares_a_job_with_a_calendar_that_exists() -> None:
    empty = Horai("payroll")
    async with Harness(empty, start=START) as time, rest(time.database_url) as api:
        assert (await api("PUT", "/api/v1/calendars/cn", CN)).status == 201
        app = Horai("payroll", database_url=time.database_url)

        @app.job(cron="0 9 1 * *", timezone="Asia/Shanghai", calendar="cn", on_holiday="before")
        async def pay() -> None: ...

        first = await pay.next(1, after=datetime(2026, 9, 15, tzinfo=UTC))

        assert pay.declaration.document["calendar"] == {"name": "cn", "onHoliday": "before"}
        assert first[0].local.isoformat() == "2026-09-30T09:00:00+08:00"
        assert first[0].note is not None
        assert "the calendar cn" in first[0].note
        await app.close()


def test_an_option_without_a_named_calendar_is_refused_at_once() -> None:
    app = Horai("payroll")

    async def pay() -> None: ...

    with pytest.raises(Invalid, match="named calendar"):
        app.job(pay, cron="0 9 * * *", calendar=["12-25"], on_holiday="after")
    with pytest.raises(Invalid, match="must be a list"):
        app.job(pay, cron="0 9 * * *", calendar="12-25")
    with pytest.raises(Invalid, match="skip"):
        app.job(pay, cron="0 9 * * *", calendar={"name": "cn", "onHoliday": "later"})
    with pytest.raises(Invalid, match="use skip"):
        app.job(pay, every="1h", calendar="cn", on_holiday="after")
