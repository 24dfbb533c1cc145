"""Concurrency keys in a virtual time: the instances of a key run one after the other, and none waits for a timer."""

from virtual_shop import START, application, at

from horai import Instance, Retry
from horai.testing import Harness


async def test_instances_of_a_key_run_one_after_the_other_at_the_same_moment() -> None:
    app, inside, most = application(), list[str](), list[int]()

    @app.job
    async def charge(instance: Instance[int]) -> int:
        inside.append("x")
        most.append(len(inside))
        inside.pop()
        return instance.payload

    async with Harness(app, START) as time:
        handles = [await charge.options(concurrency_key="customer-7").enqueue(number) for number in range(5)]
        await time.drain()
        assert [await handle.result() for handle in handles] == list(range(5))

    assert (len(most), max(most)) == (5, 1)
    assert {fired.ran_at for fired in time.fired(charge)} == {at(8)}


async def test_a_retry_that_waits_gives_its_place_to_the_next() -> None:
    app, tried = application(), list[int]()

    @app.job(retry=Retry(max=1, base="10m", jitter="none"))
    async def charge(instance: Instance[int]) -> None:
        tried.append(instance.payload)
        if instance.payload == 0 and instance.attempt == 1:
            raise ConnectionError("the bank is away")

    async with Harness(app, START) as time:
        keyed = charge.options(concurrency_key="customer-7")
        first, second = await keyed.enqueue(0), await keyed.enqueue(1)
        await time.drain()
        assert (await first.state(), await second.state()) == ("FAIL", "SUCCESS")
        await time.advance("1h")
        assert await first.state() == "SUCCESS"

    assert tried == [0, 1, 0]


async def test_a_function_may_wait_for_another_instance_of_a_key_that_has_ended() -> None:
    app = application()

    @app.job
    async def child(number: int) -> int:
        return number

    @app.job
    async def parent() -> int:
        handles = [await child.options(concurrency_key="k").enqueue(number) for number in (1, 2, 3)]
        return sum([await handle.result() for handle in handles])

    async with Harness(app, START) as time:
        handle = await parent.enqueue()
        await time.drain()
        assert await handle.result() == 6
