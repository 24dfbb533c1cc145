"""Child calls in virtual time: a function calls another job once, is suspended, and continues with its result."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import asyncpg
import pytest

from horai import (
    CallFailed,
    Handle,
    Horai,
    InstanceCancelled,
    InstanceFailed,
    Invalid,
    Retry,
    Skip,
    StepFailed,
    Unrecoverable,
    gather,
    sleep,
    step,
)
from horai.core.states import State
from horai.db.instance_relations import caller_of
from horai.features.dead_letters.service import replay_letter
from horai.features.explain.service import explain_instance
from horai.features.steps.rules import Kind, StepState
from horai.features.steps.service import list_steps
from horai.testing import Harness, VirtualTime, crash_everywhere

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


@dataclass
class Invoice:
    number: int
    to: str


def invoices(app: Horai) -> Any:
    @app.job(retry=0)
    async def print_invoice(to: str) -> Invoice:
        await sleep("5m")
        if to == "nobody":
            raise ValueError("no address")
        return Invoice(7, to)

    return print_invoice


async def test_a_call_runs_the_other_job_once_and_returns_its_typed_result() -> None:
    app, began = Horai("shop"), list[str]()
    print_invoice = invoices(app)

    @app.job
    async def checkout(to: str) -> str:
        began.append(to)
        made = await print_invoice.call(to)
        assert isinstance(made, Invoice)
        await sleep("1h")
        return f"{made.number} for {made.to}"

    async with Harness(app, START) as time:
        assert await time.run(checkout, "ann") == "7 for ann"

        assert began == ["ann"] * 3  # the call and the sleep suspended it
        assert [(one.attempt, one.state) for one in time.fired(checkout)] == [(1, "INIT"), (1, "INIT"), (1, "SUCCESS")]
        assert len({one.id for one in time.fired(print_invoice)}) == 1


async def test_calls_side_by_side_need_a_key_each_and_run_at_once() -> None:
    app = Horai("shop")
    print_invoice = invoices(app)

    @app.job
    async def checkout() -> list[str]:
        ann, bob = await gather(
            print_invoice.options(key="ann").call("ann"), print_invoice.options(key="bob").call("bob")
        )
        return [ann.to, bob.to]

    @app.job(retry=0)
    async def careless() -> None:
        await gather(print_invoice.call("ann"), print_invoice.call("bob"))

    async with Harness(app, START) as time:
        assert await time.run(checkout) == ["ann", "bob"]
        assert time.now == START.replace(minute=5)
        with pytest.raises(InstanceFailed, match="run at once"):
            await time.run(careless)


async def test_a_child_that_dies_fails_the_call_which_the_function_may_catch() -> None:
    app = Horai("shop")
    print_invoice = invoices(app)

    @app.job(retry=0)
    async def checkout(to: str) -> str:
        try:
            await print_invoice.call(to)
        except StepFailed as error:
            await step("note", str, 1)
            await sleep("1h")
            return f"{cast('CallFailed', error).instance} died of {error.error_type}: {error.message.splitlines()[0]}"
        return "printed"

    @app.job(retry=0)
    async def careless(to: str) -> None:
        await print_invoice.call(to)

    async with Harness(app, START) as time:
        told = await time.run(checkout, "nobody")
        (child,) = {one.id for one in time.fired(print_invoice)}
        assert told == f"{child} died of ValueError: ValueError: no address"

        with pytest.raises(InstanceFailed, match="no address") as died:
            await time.run(careless, "nobody")
        assert died.value.error_code == "ValueError"


async def test_a_child_that_was_skipped_or_cancelled_fails_the_call() -> None:
    app = Horai("shop")

    @app.job
    async def child(how: str) -> None:
        if how == "skip":
            raise Skip("nothing to print")
        await sleep("1h")

    @app.job(retry=0)
    async def caller(how: str) -> str:
        try:
            await child.call(how)
        except CallFailed as error:
            return f"{error.error_type}: {error.message}"
        return "ended"

    async with Harness(app, START) as time:
        assert await time.run(caller, "skip") == "SKIPPED: nothing to print"
        handle = await caller.enqueue("wait")
        await time.drain()
        await child.handle(time.fired(child)[-1].id).cancel()
        await time.drain()
        assert await handle.result() == "CANCELLED: it was cancelled (USER)"


async def test_a_replay_of_a_dead_child_stands_for_it_in_the_next_attempt_of_the_caller() -> None:
    app, broken = Horai("shop"), [True]

    @app.job(retry=0)
    async def child() -> str:
        if broken[0]:
            raise ValueError("out of paper")
        return "printed"

    @app.job(retry=Retry(max=3, base="10m", jitter="none"))
    async def caller() -> str:
        return await child.call()

    async with Harness(app, START) as time:
        handle = await caller.enqueue()
        await time.drain()
        assert await handle.state() == "FAIL"
        broken[0] = False
        await replay(app, time, time.fired(child)[0].id)
        await time.advance("1h")

        assert await handle.result() == "printed"
        assert [one.state for one in time.fired(child)] == ["DEAD", "SUCCESS"]


async def test_a_caught_failure_of_a_call_stays_one_when_the_child_is_replayed() -> None:
    app, broken = Horai("shop"), [True]

    @app.job(retry=0)
    async def child() -> str:
        if broken[0]:
            raise ValueError("out of paper")
        return "printed"

    @app.job
    async def caller() -> str:
        try:
            return await child.call()
        except CallFailed as error:
            told = error.error_type
        await step("note", str, 1)
        await sleep("1h")
        return f"not printed: {told}"

    async with Harness(app, START) as time:
        handle = await caller.enqueue()
        await time.drain()
        broken[0] = False
        await replay(app, time, time.fired(child)[0].id)
        await time.advance("2h")

        assert await handle.result() == "not printed: ValueError"


async def replay(app: Horai, time: VirtualTime, instance_id: int | str) -> None:
    conn = await asyncpg.connect(time.database_url)
    letter = await conn.fetchval("select id from horai.dead_letter where instance_id = $1", int(instance_id))
    await conn.close()
    await replay_letter((await app.client()).scope, letter)


async def test_children_of_a_cancelled_caller_are_cancelled_with_their_own_children() -> None:
    app = Horai("shop")
    print_invoice = invoices(app)

    @app.job
    async def middle() -> None:
        await print_invoice.call("ann")

    @app.job
    async def caller() -> None:
        await middle.call()

    async with Harness(app, START) as time:
        handle = await caller.enqueue()
        await time.drain()
        assert await handle.cancel()
        await time.drain()

        for job in (middle, print_invoice):
            own: Handle[Any] = job.handle(time.fired(job)[0].id)
            with pytest.raises(InstanceCancelled, match="PARENT"):
                await own.result(timeout=5)


async def test_a_caller_that_starts_over_calls_again_and_its_first_child_is_cancelled() -> None:
    app = Horai("shop")
    print_invoice = invoices(app)

    @app.job
    async def checkout(to: str) -> str:
        return (await print_invoice.call(to)).to

    async with Harness(app, START) as time:
        handle = await checkout.put("order:1", payload="ann")
        await time.drain()
        await checkout.put("order:1", payload="bob")
        await time.advance("1h")

        assert await handle.result() == "bob"
        first, second = sorted({int(one.id) for one in time.fired(print_invoice)})
        with pytest.raises(InstanceCancelled, match="PARENT"):
            await print_invoice.handle(first).result(timeout=5)
        assert (await print_invoice.handle(second).result()).to == "bob"


async def test_a_caller_that_ends_before_its_child_takes_the_child_along() -> None:
    app = Horai("shop")
    print_invoice = invoices(app)

    async def fail() -> None:
        raise Unrecoverable("out of stock")

    @app.job
    async def checkout() -> None:
        await gather(print_invoice.call("ann"), step("stock", fail))

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="out of stock"):
            await time.run(checkout)
        await time.drain()
        with pytest.raises(InstanceCancelled):
            await print_invoice.handle(await only_child(time)).result(timeout=5)


async def only_child(time: VirtualTime) -> int:
    conn = await asyncpg.connect(time.database_url)
    child: int = await conn.fetchval("select child_id from horai.child_call")
    await conn.close()
    return child


async def test_a_call_of_an_encrypted_job_or_outside_of_a_durable_function_is_refused() -> None:
    app = Horai("shop")

    @app.job(encrypted=True)
    async def secret() -> None:
        pass

    @app.job(retry=0)
    async def caller() -> None:
        await secret.call()

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="encrypted"):
            await time.run(caller)
        with pytest.raises(Invalid, match="outside of the async function"):
            await secret.call()
        with pytest.raises(Invalid, match="is not an option of call"):
            await secret.options(delay="5m").call()


async def test_a_caller_and_its_child_survive_a_crash_at_every_boundary() -> None:
    app, effects = Horai("shop"), set[str]()

    @app.job(retry=Retry(max=5))
    async def child(to: str) -> str:
        async def note() -> str:
            effects.add(to)
            return to.upper()

        return await step("note", note)

    @app.job(retry=Retry(max=5))
    async def caller() -> list[str]:
        first = await child.call("ann")
        second, third = await gather(child.options(key="b").call("bob"), child.options(key="c").call("cy"))
        return [first, second, third]

    def done() -> set[str]:
        found = set(effects)
        effects.clear()
        return found

    report = await crash_everywhere(caller, effects=done)
    assert report.result == ["ANN", "BOB", "CY"]
    assert report.effects == {"ann", "bob", "cy"}
    assert {"before child#1", "inside child#1", "after child#1", "inside note#1"} <= set(report.boundaries)


async def test_the_explanation_of_a_waiting_caller_names_its_child_and_the_child_names_its_caller() -> None:
    app = Horai("shop")
    print_invoice = invoices(app)

    @app.job
    async def checkout(to: str) -> None:
        await step("load", str, 1)
        await print_invoice.call(to)

    async with Harness(app, START) as time:
        handle = await checkout.enqueue("ann")
        await time.drain()
        scope, child = (await app.client()).scope, time.fired(print_invoice)[0].id

        why = await explain_instance(scope, int(handle.id))
        waits = f"its function has called other jobs and waits for instance {child} of print_invoice"
        assert why.why == f"Instance {handle.id} is suspended: {waits}."
        assert [(hold.kind.name, hold.words) for hold in why.holds] == [("NOT_DUE", waits)]

        async with scope.read() as connection:
            assert await caller_of(connection, int(child)) == int(handle.id)
        page = await list_steps(scope, int(handle.id), 0, 10)
        assert [(row.kind, row.name, row.state) for row in page.rows] == [
            (Kind.STEP, "load", StepState.FINISHED),
            (Kind.CALL, "print_invoice", StepState.OPEN),
        ]
        assert (page.rows[1].child_id, page.rows[1].child_job, page.rows[1].child_state) == (
            int(child), "print_invoice", State.INIT,
        )  # fmt: skip
        assert [row.name for row in (await list_steps(scope, int(handle.id), 1, 10)).rows] == ["print_invoice"]
