"""Backfills in a virtual time."""

from datetime import UTC, datetime, timedelta

from horai import Horai
from horai.core.backfill_status import BackfillStatus
from horai.core.queue import parse_rate
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import BackfillRequest
from horai.testing import Harness

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
DAY = timedelta(days=1)


async def test_C21_slots_of_the_past_run_at_the_rate_of_the_virtual_time() -> None:
    app = Horai("shop")

    @app.job(cron="0 3 * * *")
    async def nightly() -> None: ...

    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        await nightly.explain(START)  # makes the job known
        wish = BackfillRequest(START - 7 * DAY, START, rate=parse_rate("1/m"))
        backfill = await backfills.start_backfill(scope, "nightly", wish)
        assert backfill.progress.total == 7

        await time.advance("10m")

        done = await backfills.read_backfill(scope, backfill.id)
        fired = time.fired(nightly)
    assert (done.status, done.progress.succeeded) == (BackfillStatus.DONE, 7)
    assert [one.fire_time for one in fired] == [datetime(2026, 2, 23, 3, tzinfo=UTC) + n * DAY for n in range(7)]
    assert [one.ran_at for one in fired] == [START + timedelta(minutes=n) for n in range(7)]
