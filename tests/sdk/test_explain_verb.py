"""`job.explain(at)`."""

from datetime import UTC, datetime, timedelta

import pytest
from working import working

from horai import Horai
from horai.core.errors import Invalid
from horai.features.explain import Verdict


async def test_a_job_explains_its_slots(url: str):
    app = Horai("shop", database_url=url)

    @app.job(cron="30 2 * * *", timezone="Europe/Berlin")
    async def close_the_books() -> None: ...

    coming = await close_the_books.explain(datetime(2999, 6, 1, 0, 30, tzinfo=UTC))
    assert (coming.verdict, coming.local, coming.instance_id) == (Verdict.COMING, "2999-06-01T02:30:00+02:00", None)
    assert coming.next == coming.at + timedelta(days=1)

    lost = await close_the_books.explain("2999-03-31T02:30")
    assert lost.why.startswith("02:30 does not exist on 2999-03-31")
    twice = await close_the_books.explain(datetime(2999, 10, 27, 2, 30))  # noqa: DTZ001 — on the wall of the job's zone
    assert twice.verdict == "COMING"
    assert twice.also is not None
    assert twice.also.verdict == "NOT_A_SLOT"
    with pytest.raises(Invalid, match="at: is neither"):
        await close_the_books.explain("tomorrow")
    await app.close()


async def test_a_run_is_explained_by_its_instance(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    async def double(number: int) -> int:
        return number * 2

    async with working(app):
        at = datetime.now(UTC)
        handle = await double.enqueue(21, at=at)
        assert await handle.result(timeout=30) == 42
        fired = await double.explain(at)
    assert (fired.verdict, fired.instance_id) == (Verdict.FIRED, handle.id)


def test_a_thread_is_told_the_same_without_an_event_loop(url: str):
    app = Horai("shop", database_url=url)

    @app.job(every="1h")
    async def hourly() -> None: ...

    assert hourly.sync.explain("2999-06-01T02:30:00Z").verdict is Verdict.NOT_A_SLOT
    app.close_sync()
