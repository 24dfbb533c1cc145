"""`chain`, `group`, `chord` and `map` in a virtual time: results are passed on, and each is one run."""

import pytest
from virtual_shop import START, application

from horai import Horai, Instance, InstanceFailed, Invalid, Retry, chain, chord, group
from horai.testing import Harness


class Mill:
    """Jobs of every form of function."""

    def __init__(self) -> None:
        self.app: Horai = application()

        @self.app.job
        async def load(name: str) -> list[str]:
            return [name, name.upper()]

        @self.app.job
        async def clean(rows: list[str], mark: str = "-") -> str:
            return mark.join(rows)

        @self.app.job
        async def save(instance: Instance[str]) -> str:
            return f"saved {instance.payload}"

        @self.app.job
        async def square(n: int) -> int:
            return n * n

        @self.app.job
        async def add(numbers: list[int], more: int = 0) -> int:
            return sum(numbers) + more

        @self.app.job
        async def nothing() -> None: ...

        @self.app.job(retry=Retry(max=0))
        async def fail(n: int) -> int:
            raise ValueError(n)

        self.load, self.clean, self.save, self.square = load, clean, save, square
        self.add, self.nothing, self.fail = add, nothing, fail


async def test_a_chain_passes_each_result_on_as_the_first_argument() -> None:
    mill = Mill()
    async with Harness(mill.app, START) as time:
        run = await chain(mill.load.s("a"), mill.clean.s("+"), mill.save.s()).enqueue()
        named = await chain(mill.load.s(name="b"), mill.clean.s(mark="*"), mill.save.s()).enqueue(delay="1h")
        plain = await chain(mill.load.s("c"), mill.save.si("by itself")).enqueue()
        assert await run.state() == "PENDING"
        await time.advance("2h")
        assert [await each.result() for each in (run, named, plain)] == ["saved a+A", "saved b*B", "saved by itself"]
        assert (await run.wait(), await run.progress()) == ("SUCCESS", (3, 3, 0))
        assert [node.job for node in (await run.run.read()).nodes.values()] == ["clean", "load", "save"]
        assert run.run.workflow == named.run.workflow != plain.run.workflow
        assert await run.cancel() is False


async def test_a_result_of_none_is_passed_on() -> None:
    mill = Mill()

    @mill.app.job
    async def told(given: str | None, more: str) -> str:
        return f"{given} {more}"

    async with Harness(mill.app, START) as time:
        run = await chain(mill.nothing.s(), told.s("more")).enqueue()
        await time.drain()
        assert await run.result() == "None more"


async def test_a_group_returns_the_results_in_the_order_of_its_calls() -> None:
    mill = Mill()
    async with Harness(mill.app, START) as time:
        same = await group(mill.square.s(n) for n in range(5)).enqueue()
        mixed = await group(mill.square.s(3), mill.load.s("a"), chain(mill.square.s(2), mill.square.s())).enqueue()
        mapped = await mill.square.map([4, 5])
        await time.drain()
        assert await same.result() == [0, 1, 4, 9, 16]
        assert await mixed.result() == [9, ["a", "A"], 16]
        assert (await mapped.result(), await mapped.progress()) == ([16, 25], (2, 2, 0))


async def test_a_chord_passes_the_list_of_results_on() -> None:
    mill = Mill()
    async with Harness(mill.app, START) as time:
        same = await chord(group(mill.square.s(n) for n in (1, 2, 3)), mill.add.s(more=100)).enqueue()
        after = await chain(mill.square.s(2), group(mill.square.s(), mill.square.si(1)), mill.add.s()).enqueue()
        await time.drain()
        assert (await same.result(), await after.result()) == (114, 17)


async def test_a_dead_call_blocks_the_calls_after_it_and_a_cancel_ends_the_run() -> None:
    mill = Mill()
    async with Harness(mill.app, START) as time:
        run = await chain(mill.fail.s(1), mill.square.s()).enqueue()
        ahead = await chain(mill.square.s(1), mill.square.s()).enqueue(delay="1h")
        await time.drain()
        assert (await run.state(), await run.progress()) == ("BLOCKED", (1, 2, 1))
        with pytest.raises(InstanceFailed):
            await run.run.result("fail")
        assert (await run.cancel(), await ahead.cancel()) == (True, True)
        await time.advance("2h")
        assert (await run.state(), await ahead.state()) == ("CANCELLED", "CANCELLED")
        assert len(time.fired(mill.square)) == 0


async def test_arguments_that_do_not_fit_are_refused_at_the_call() -> None:
    mill = Mill()

    @mill.app.job(encrypted=True)
    async def sealed(n: int) -> int:
        return n

    async with Harness(mill.app, START) as time:
        for wrong in (
            chain(mill.load.s("a"), mill.clean.s("+", "too many")),
            chain(mill.load.s("a"), mill.clean.s(rows=[])),
            chain(mill.load.s("a"), mill.clean.s(mark=7)),
            chain(mill.load.s("a"), mill.clean.s(unknown=7)),
            chain(mill.load.s("a"), mill.nothing.s()),
            chain(mill.load.s("a"), mill.save.s("b")),
            chain(mill.square.s("seven")),
            chain(mill.square.s()),
            chain(sealed.s(1)),
            chain(),
            group(),
            group(chain(mill.load.s("a"), group(mill.square.s(1), mill.square.s(2)))),
        ):
            with pytest.raises((Invalid, TypeError)):
                await wrong.enqueue()
        assert await time.drain() == []
