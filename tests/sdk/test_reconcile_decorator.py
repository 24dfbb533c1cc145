"""`@app.reconcile`: the source is a function of the application, and time is the test's."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai import Horai, Invalid, Wanted
from horai.db.pool import Plans
from horai.features.reconcile import service as reconcilers
from horai.features.reconcile.store import Report
from horai.operations.scope import Scope
from horai.testing import Harness

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
EVENING = START + timedelta(hours=10)


@dataclass
class Article:
    title: str


async def reports(scope: Scope, name: str = "articles") -> list[Report]:
    return [*await reconcilers.list_reports(scope, name, 2**63 - 1, 100)]


async def test_B16_instances_that_a_function_desires_are_created_within_one_period_and_run_once() -> None:
    app, published = Horai("news"), list[str]()

    @app.job
    async def publish(article: Article) -> None:
        published.append(article.title)

    @app.reconcile(every="1h", job=publish)
    async def articles() -> AsyncGenerator[Wanted]:
        for number in range(2_500):
            yield Wanted(f"article:{number}", EVENING, Article(f"n{number}"))

    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        await time.advance("1h")
        async with scope.write(Plans.FRESH, autocommit=True) as connection:
            await connection.execute("delete from horai.instance_live where key < 'article:2'")
        await time.advance("1h")
        told = await reports(scope)
        listed = await reconcilers.read_reconciler(scope, "articles")
        await time.advance("12h")
        last = await reports(scope)
    second, first = told
    assert (first.tally.found, first.tally.created, first.surplus) == (2_500, 2_500, 0)
    assert second.tally.missing == second.tally.created > 1_000
    assert (listed.row.target, listed.row.source) == ("publish", {"type": "python"})
    assert listed.last is not None
    assert (listed.last.id, listed.next_fire) == (second.id, START + timedelta(hours=3))
    assert sorted(published) == sorted(f"n{number}" for number in range(2_500))
    assert (last[0].tally.missing, last[0].tally.left_alone) == (0, 2_500)


async def test_B16_a_function_may_return_what_it_wants_and_need_not_be_async() -> None:
    app = Horai("news")

    @app.job
    async def publish() -> None: ...

    @app.reconcile(job=publish, name="returned")
    def returned() -> list[Wanted]:
        return [Wanted("a", EVENING)]

    @app.reconcile(job=publish, name="yielded")
    def yielded() -> Iterator[Any]:
        yield Wanted("b", EVENING, {"not": "taken"})
        yield Wanted("", EVENING)
        yield Wanted("late", datetime(2026, 1, 1))  # noqa: DTZ001
        yield "something else"

    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        for job in (returned, yielded):
            await job.trigger(idempotency_key="now")
        await time.advance("1s")
        first, second = await reports(scope, "returned"), await reports(scope, "yielded")
    assert (first[0].tally.created, second[0].tally.created, second[0].tally.faulty) == (1, 1, 3)


async def test_B16_a_function_that_fails_is_told_and_read_from_its_beginning_again() -> None:
    app, tries = Horai("news"), list[int]()

    @app.job
    async def publish() -> None: ...

    @app.reconcile(every="1h", job=publish)
    async def articles() -> AsyncGenerator[Wanted]:
        tries.append(1)
        for number in range(1_500):
            if number == 1_200 and len(tries) == 1:
                raise RuntimeError("the table is locked")
            yield Wanted(f"article:{number}", EVENING)

    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        await time.advance("1h")
        (broken,) = await reports(scope)
        await time.advance("30m")
        (report,) = await reports(scope)
    assert broken.error == "RuntimeError: the table is locked"
    assert broken.finished_at is None
    assert (report.tally.found, report.tally.created, report.error) == (1_500, 1_500, None)
    assert report.surplus == 0


def test_a_source_takes_nothing() -> None:
    app = Horai("news")

    @app.job
    async def publish() -> None: ...

    def articles(since: datetime) -> list[Wanted]:
        return [Wanted("a", since)]

    source: Any = articles
    with pytest.raises(Invalid, match="takes arguments"):
        app.reconcile(every="5m", job=publish)(source)
