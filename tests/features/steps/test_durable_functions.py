"""Durable functions in a virtual time: finished steps never run again, and sleeps and waits free the worker."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from horai import Horai, InstanceFailed, Retry, StepFailed, Unrecoverable, gather, sleep, step, step_key
from horai.testing import Harness

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


@dataclass
class Order:
    id: str
    amount: int


async def test_a_finished_step_does_not_run_again_in_a_later_attempt() -> None:
    app, ran = Horai("shop"), list[str]()

    async def load(order: str) -> Order:
        ran.append(f"load {order}")
        return Order(order, 7)

    async def charge(order: Order) -> int:
        ran.append("charge")
        if ran.count("charge") == 1:
            raise ConnectionError("the bank is away")
        return order.amount

    @app.job(retry=Retry(max=3))
    async def checkout(order: str) -> str:
        loaded = await step("load", load, order)
        return f"{loaded.id} paid {await step('charge', charge, loaded)}"

    async with Harness(app, START) as time:
        assert await time.run(checkout, "A-1") == "A-1 paid 7"

        fired = time.fired(checkout)
    assert ran == ["load A-1", "charge", "charge"]
    assert [(one.attempt, one.state, one.error) for one in fired] == [
        (1, "FAIL", "ConnectionError"),
        (2, "SUCCESS", None),
    ]


async def test_a_sleep_frees_the_worker_and_counts_neither_an_attempt_nor_a_failure() -> None:
    app, began = Horai("shop"), list[datetime]()

    @app.job
    async def remind() -> str:
        began.append(time.now)
        await sleep("10m")
        await sleep(timedelta(days=30))
        return "done"

    async with Harness(app, START) as time:
        handle = await remind.enqueue()
        await time.advance("9m")
        assert [one.state for one in time.fired(remind)] == ["INIT"]
        await time.advance("31d")
        assert await handle.result() == "done"
        fired = time.fired(remind)
    assert began == [START, START + timedelta(minutes=10), START + timedelta(days=30, minutes=10)]
    assert [(one.attempt, one.state) for one in fired] == [(1, "INIT"), (1, "INIT"), (1, "SUCCESS")]


async def test_a_finished_record_that_the_code_no_longer_has_is_ignored_with_a_warning() -> None:
    app, is_new, ran = Horai("shop"), list[bool](), list[str]()

    @app.job
    async def checkout() -> str:
        await step("load" if is_new else "read", ran.append, "load")
        await step("keep", ran.append, "keep")
        await sleep("10m")
        return "done"

    async with Harness(app, START) as time:
        handle = await checkout.enqueue()
        await time.advance("1m")
        is_new.append(True)
        await time.advance("10m")

        assert await handle.result() == "done"
        lines = [(line.level, line.message) for line in await handle.logs()]
    assert ran == ["load", "keep", "load"]
    assert [level for level, _ in lines] == ["WARNING"]
    assert lines[0][1].endswith("no longer has: read#1")


async def test_a_function_that_comes_past_all_records_logs_no_warning() -> None:
    app = Horai("shop")

    @app.job
    async def remind() -> str:
        await step("write", str)
        await sleep("10m")
        return "done"

    async with Harness(app, START) as time:
        handle = await remind.enqueue()
        await time.advance("11m")
        assert await handle.result() == "done"
        assert await handle.logs() == []


async def test_steps_of_one_name_are_told_apart_by_their_occurrence() -> None:
    app, pages = Horai("shop"), list[int]()

    async def page(number: int) -> int:
        pages.append(number)
        return number * 10

    @app.job
    async def crawl() -> list[int]:
        found = [await step("page", page, number) for number in range(3)]
        await sleep("1h")
        return [*found, await step("page", page, 3)]

    async with Harness(app, START) as time:
        assert await time.run(crawl) == [0, 10, 20, 30]
    assert pages == [0, 1, 2, 3]


async def test_parallel_steps_run_once_each_though_one_of_them_suspends() -> None:
    app, ran, keys = Horai("shop"), list[str](), set[str]()

    async def send(what: str) -> str:
        ran.append(what)
        keys.add(step_key())
        return what

    async def later() -> str:
        await sleep("2h")
        return await step("late", send, "late")

    @app.job
    async def ship() -> str:
        return "-".join(await gather(step("send", send, "a", key="a"), step("send", send, "b", key="b"), later()))

    async with Harness(app, START) as time:
        handle = await ship.enqueue()
        await time.advance("3h")
        assert await handle.result() == "a-b-late"
    assert sorted(ran) == ["a", "b", "late"]
    assert keys == {f"{handle.id}:send#a:1", f"{handle.id}:send#b:1", f"{handle.id}:late:1"}


async def test_two_parallel_steps_of_one_name_need_keys() -> None:
    app = Horai("shop")

    async def send(what: str) -> str:
        await asyncio.sleep(0)
        return what

    @app.job(retry=0)
    async def ship() -> None:
        await gather(step("send", send, "a"), step("send", send, "b"))

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="run at once"):
            await time.run(ship)


async def test_a_step_is_retried_by_its_own_policy_before_its_error_is_raised() -> None:
    app, tries = Horai("shop"), list[datetime]()

    def charge() -> None:
        tries.append(time.now)
        raise ConnectionError("away")

    @app.job(retry=0)
    async def checkout() -> str:
        try:
            await step("charge", charge, retry=Retry(max=2, base="30s", jitter="none"))
        except StepFailed as error:
            await sleep("1h")
            return f"{error.error_type}: {error.message}"
        return "paid"

    async with Harness(app, START) as time:
        assert await time.run(checkout) == "ConnectionError: away"
        fired = time.fired(checkout)
    assert tries == [START, START + timedelta(seconds=60), START + timedelta(seconds=180)]
    assert {one.attempt for one in fired} == {1}


async def test_an_error_that_the_function_catches_is_raised_again_after_a_suspension() -> None:
    app, tries = Horai("shop"), list[str]()

    async def charge() -> None:
        tries.append("charge")
        if len(tries) == 1:
            raise ConnectionError("away")

    async def note() -> str:
        return "noted"

    @app.job
    async def checkout() -> str:
        try:
            await step("charge", charge)
        except StepFailed:
            noted = await step("note", note)
            await sleep("1h")
            return noted
        return "paid"

    async with Harness(app, START) as time:
        assert await time.run(checkout) == "noted"
    assert tries == ["charge"]


async def test_unrecoverable_errors_of_a_step_make_a_dead_letter_at_once() -> None:
    app = Horai("shop")

    async def charge() -> None:
        raise Unrecoverable("the card is stolen")

    @app.job
    async def checkout() -> None:
        await step("charge", charge, retry=5)

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="stolen"):
            await time.run(checkout)
        assert len(time.fired(checkout)) == 1


async def test_a_function_that_catches_its_own_suspension_is_a_failure_and_not_a_success() -> None:
    app = Horai("shop")

    @app.job
    async def hasty() -> str:
        with suppress(BaseException):  # the mistake that is tested
            await sleep("1h")
        return "done"

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="SUSPENSION_SWALLOWED"):
            await time.run(hasty)


async def test_a_step_in_the_callers_transaction_takes_effect_exactly_once() -> None:
    app = Horai("shop")

    async def debit(conn: "asyncpg.Connection[asyncpg.Record]") -> int:
        return await conn.fetchval("insert into public.debit default values returning id")

    @app.job(retry=Retry(max=3))
    async def pay() -> int:
        conn = await asyncpg.connect(time.database_url)
        try:
            async with conn.transaction():
                number = await step("debit", debit, conn, conn=conn)
                if (await conn.fetchval("select count(*) from public.crash")) == 0:
                    await other.execute("insert into public.crash default values")
                    raise ConnectionError("before the commit")
        finally:
            await conn.close()
        await sleep("1h")
        return number

    async with Harness(app, START) as time:
        other = await asyncpg.connect(time.database_url)
        await other.execute(
            "create table public.debit (id bigint generated always as identity); create table public.crash (id bigint generated always as identity)"
        )
        assert await time.run(pay) == 2  # the first insert was rolled back with its record
        assert await other.fetchval("select count(*) from public.debit") == 1
        await other.close()


async def test_a_put_that_moves_a_suspended_instance_starts_it_over() -> None:
    app, ran = Horai("shop"), list[str]()

    async def draft(text: str) -> str:
        ran.append(text)
        return text

    @app.job
    async def publish(text: str) -> str:
        made = await step("draft", draft, text)
        await sleep("1h")
        return made

    async with Harness(app, START) as time:
        await publish.put("article:1", payload="first", at=START)
        await time.drain()
        handle = await publish.put("article:1", payload="second", at=START + timedelta(minutes=5))
        await time.advance("2h")
        assert await handle.result() == "second"
    assert ran == ["first", "second"]


async def test_a_clock_that_jumps_ahead_ends_a_sleep_once_and_not_before_its_time() -> None:
    app, woken = Horai("shop"), list[datetime]()

    @app.job
    async def remind() -> None:
        await sleep("10m")
        woken.append(time.now)

    async with Harness(app, START) as time:
        handle = await remind.enqueue()
        await time.drain()
        await time.workplace.move_to(START + timedelta(minutes=9))
        await time.drain()
        assert woken == []
        await time.workplace.move_to(START + timedelta(days=1))
        await time.drain()

        assert await handle.state() == "SUCCESS"
        assert woken == [START + timedelta(days=1)]
