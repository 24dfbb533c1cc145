"""Unique and debounced calls in a virtual time: windows end when the test has moved the time."""

from virtual_shop import START, application, at

from horai import Retry
from horai.core.put import PutDecision
from horai.testing import Harness


async def test_a_window_ends_with_the_virtual_time() -> None:
    app = application()

    @app.job
    async def remind(user: int) -> int:
        return user

    async with Harness(app, START) as time:
        once = remind.options(unique="10m")
        first = await once.enqueue(7)
        assert await first.result() == 7
        await time.advance("9m59s")
        assert (await once.enqueue(7)).id == first.id
        await time.advance("1s")
        second = await once.enqueue(7)
        await time.drain()

    assert (second.duplicate, second.id == first.id) == (False, False)
    assert [fired.ran_at for fired in time.fired(remind)] == [at(8), at(8, 10)]


async def test_an_instance_that_is_retried_keeps_its_arguments_beyond_the_window() -> None:
    app = application()

    @app.job(retry=Retry(max=3, base="10m"))
    async def remind(user: int) -> None:
        raise ConnectionError("the mail server is away")

    async with Harness(app, START) as time:
        once = remind.options(unique="1m")
        first = await once.enqueue(7)
        await time.advance("14m")
        assert (await once.enqueue(7)).id == first.id
        await time.advance("5h")
        assert await first.state() == "DEAD"
        assert not (await once.enqueue(7)).duplicate


async def test_a_burst_of_debounced_calls_runs_once_after_the_last() -> None:
    app = application()

    @app.job
    async def reindex(product: str) -> None: ...

    async with Harness(app, START) as time:
        decisions: list[PutDecision] = []
        for _ in range(4):
            decisions.append((await reindex.options(debounce="30s").enqueue("a")).decision)
            await time.advance("20s")
        await time.advance("1h")
        last = await reindex.options(debounce="30s").enqueue("a")
        await time.advance("30s")

    assert decisions == ["INSERTED", "UPDATED", "UPDATED", "UPDATED"]
    assert last.decision == "INSERTED"
    assert [fired.ran_at for fired in time.fired(reindex)] == [at(8, 1, 30), at(9, 1, 50)]
