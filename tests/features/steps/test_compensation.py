"""Compensation in a virtual time: finished steps are undone, the last first, before the instance dies or is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import IS_LONG

from horai import (
    Handle,
    Horai,
    InstanceCancelled,
    InstanceFailed,
    Retry,
    StepFailed,
    Unrecoverable,
    gather,
    sleep,
    step,
    step_key,
    wait_for,
)
from horai.core.calls import Call
from horai.features.steps.rules import StepId
from horai.testing import CrashReport, Harness, crash_everywhere
from horai.testing.crashes import WorkerKilled
from horai.testing.workplace import Workplace

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
ONCE = Retry(max=0)


@dataclass
class Ledger:
    """Every effect in the order in which it happened, and the idempotency keys of the compensations."""

    effects: list[str] = field(default_factory=list[str])
    keys: list[str] = field(default_factory=list[str])
    failing: set[str] = field(default_factory=set[str])

    async def do(self, what: str) -> str:
        self.effects.append(what)
        return what

    async def undo(self, what: str) -> None:
        self.keys.append(step_key().partition(":")[2])
        if what in self.failing:
            self.effects.append(f"failed to undo {what}")
            raise ConnectionError(f"{what} is away")
        self.effects.append(f"undo {what}")

    def taken(self) -> list[str]:
        seen = list(self.effects)
        self.effects.clear()
        return seen


async def letter(url: str) -> tuple[str, str, list[str]]:
    """Return code, message and tags of the only dead letter."""
    connection = await asyncpg.connect(url)
    try:
        (row,) = await connection.fetch("select error_code, error_msg, tags from horai.dead_letter")
    finally:
        await connection.close()
    return row["error_code"], row["error_msg"], row["tags"]


async def test_finished_steps_are_compensated_in_reverse_order_when_the_instance_dies() -> None:
    app, books = Horai("shop"), Ledger()

    async def charge() -> str:
        raise ConnectionError("the bank is away")

    @app.job(retry=Retry(max=1, base="1s", jitter="none"))
    async def checkout() -> None:
        await step("reserve", books.do, "shelf", compensate=books.undo)
        await step("note", books.do, "note")
        await step("page", books.do, "page 1", compensate=books.undo)
        await step("page", books.do, "page 2", compensate=books.undo)
        await step("charge", charge, compensate=books.undo)

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="the bank is away") as died:
            await time.run(checkout)
        assert died.value.error_code == "ConnectionError"
        assert (await letter(time.database_url))[2] == ["transient_error"]
        fired = time.fired(checkout)
    assert books.effects == ["shelf", "note", "page 1", "page 2", "undo page 2", "undo page 1", "undo shelf"]
    assert books.keys == ["page:2:compensation", "page:1:compensation", "reserve:1:compensation"]
    assert [(one.attempt, one.state) for one in fired] == [(1, "FAIL"), (2, "FAIL"), (3, "DEAD")]


async def test_an_unrecoverable_error_keeps_its_own_tags_through_the_compensations() -> None:
    app, books = Horai("shop"), Ledger()

    @app.job
    async def checkout() -> None:
        await step("reserve", books.do, "shelf", compensate=books.undo)
        raise Unrecoverable("the card is stolen", tags=["fraud"])

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="stolen"):
            await time.run(checkout)
        code, message, tags = await letter(time.database_url)
    assert (code, tags) == ("Unrecoverable", ["unrecoverable", "fraud"])
    assert "the card is stolen" in message
    assert books.effects == ["shelf", "undo shelf"]


async def test_a_function_that_succeeds_or_recovers_is_not_compensated() -> None:
    app, books = Horai("shop"), Ledger()

    async def charge() -> str:
        raise ConnectionError("away")

    @app.job(retry=Retry(max=3))
    async def checkout() -> str:
        await step("reserve", books.do, "shelf", compensate=books.undo)
        try:
            await step("charge", charge, compensate=books.undo)
        except StepFailed:
            return await step("bill", books.do, "bill", compensate=books.undo)
        return "paid"

    async with Harness(app, START) as time:
        assert await time.run(checkout) == "bill"
    assert books.effects == ["shelf", "bill"]


async def test_a_failing_compensation_is_tried_again_and_named_by_the_dead_letter() -> None:
    app, books = Horai("shop"), Ledger(failing={"shelf"})

    @app.job(retry=ONCE)
    async def checkout() -> None:
        await step("charge", books.do, "money", compensate=books.undo)
        await step("reserve", books.do, "shelf", compensate=books.undo, retry=Retry(max=2, base="30s", jitter="none"))
        raise ValueError("no address")

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="COMPENSATION_FAILED"):
            await time.run(checkout)
        code, message, tags = await letter(time.database_url)
        began = [one.ran_at for one in time.fired(checkout)]
    assert code == "COMPENSATION_FAILED"
    assert "Not compensated: reserve#1 (ConnectionError: shelf is away)" in message
    assert "it had died of ValueError" in message
    assert tags == ["unrecoverable", "compensation_failed"]
    assert books.effects == ["money", "shelf", *["failed to undo shelf"] * 3, "undo money"]
    assert began == [START, START, START + timedelta(seconds=60), START + timedelta(seconds=180)]


async def test_an_unrecoverable_compensation_is_not_tried_again() -> None:
    app, books, tries = Horai("shop"), Ledger(), list[str]()

    def give_up(what: str) -> None:
        tries.append(what)
        raise Unrecoverable("the seat is sold")

    @app.job(retry=ONCE)
    async def book() -> None:
        await step("seat", books.do, "seat", compensate=give_up)
        raise ValueError("no address")

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match=r"seat#1 \(Unrecoverable: the seat is sold\)"):
            await time.run(book)
    assert tries == ["seat"]


async def test_a_compensation_that_takes_longer_than_the_job_allows_is_tried_again() -> None:
    app, books, tries = Horai("shop"), Ledger(), list[str]()

    async def slow(what: str) -> None:
        tries.append(what)
        if len(tries) == 1:
            await asyncio.Event().wait()

    @app.job(retry=ONCE, timeout="1s")
    async def book() -> None:
        await step("seat", books.do, "seat", compensate=slow)
        raise ValueError("no address")

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="no address"):
            await time.run(book)
    assert tries == ["seat", "seat"]


async def test_parallel_steps_are_compensated_though_one_of_them_has_not_finished() -> None:
    app, books = Horai("shop"), Ledger()

    async def fail() -> None:
        raise ConnectionError("away")

    @app.job(retry=ONCE)
    async def by_gather() -> None:
        await gather(step("bad", fail), *(step(name, books.do, name, compensate=books.undo) for name in "abc"))

    @app.job(retry=ONCE)
    async def by_group() -> None:
        await sleep(0.001)
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(step(name, books.do, name, compensate=books.undo))
        await step("bad", fail)

    for job in (by_gather, by_group):
        async with Harness(app, START) as time:
            with pytest.raises(InstanceFailed, match="ConnectionError"):
                await time.run(job)
        effects = books.taken()
        assert sorted(effects[:3]) == ["a", "b", "c"]
        assert sorted(effects[3:]) == ["undo a", "undo b", "undo c"]


async def test_a_step_that_the_function_no_longer_reaches_is_named_by_the_dead_letter() -> None:
    app, books = Horai("shop"), Ledger()

    @app.job(retry=ONCE)
    async def checkout() -> None:
        if not books.effects:
            await step("reserve", books.do, "shelf", compensate=books.undo)
        await step("note", books.do, "note")
        raise ValueError("no address")

    @app.job(retry=ONCE)
    async def hasty() -> None:
        if books.effects:
            raise ValueError("no address")
        await step("reserve", books.do, "shelf", compensate=books.undo)
        raise ValueError("no address")

    for job in (checkout, hasty):
        async with Harness(app, START) as time:
            with pytest.raises(InstanceFailed, match="COMPENSATION_FAILED: Not compensated: reserve#1"):
                await time.run(job)
            assert "compensation_failed" in (await letter(time.database_url))[2]
        assert not [effect for effect in books.taken() if effect.startswith("undo")]


async def test_a_step_in_the_callers_transaction_is_compensated_only_if_it_was_committed() -> None:
    app, books = Horai("shop"), Ledger()

    @app.job(retry=ONCE)
    async def pay() -> None:
        conn = await asyncpg.connect(time.database_url)
        try:
            async with conn.transaction():
                await step("debit", books.do, "debit", compensate=books.undo, conn=conn)
            async with conn.transaction():
                await step("undone", books.do, "rolled back", compensate=books.undo, conn=conn)
                raise ValueError("no address")
        finally:
            await conn.close()

    async with Harness(app, START) as time:
        with pytest.raises(InstanceFailed, match="no address"):
            await time.run(pay)
    assert books.effects == ["debit", "rolled back", "undo debit"]


def trip(books: Ledger) -> tuple[Horai, Callable[[], Awaitable[Handle[str]]]]:
    """Return a function that books a seat and a room, and then waits for an approval."""
    app = Horai("trip")

    @app.job(name="trip")
    async def travel() -> str:
        await step("seat", books.do, "seat", compensate=books.undo)
        await step("room", books.do, "room", compensate=books.undo)
        await wait_for("approved")
        return await step("mail", books.do, "mail")

    return app, travel.enqueue


async def test_a_suspended_instance_is_cancelled_after_its_compensations() -> None:
    books = Ledger()
    app, begin = trip(books)
    async with Harness(app, START) as time:
        handle = await begin()
        await time.advance("1h")

        assert await handle.cancel(compensate=True)
        assert await handle.cancel(compensate=True)  # the same again
        assert await handle.state() == "INIT"
        await time.drain()

        assert await handle.state() == "CANCELLED"
        with pytest.raises(InstanceCancelled, match="USER"):
            await handle.result()
        assert await handle.cancel(compensate=True)  # it is cancelled, as the caller wants it
    assert books.effects == ["seat", "room", "undo room", "undo seat"]


async def test_a_plain_cancel_compensates_nothing() -> None:
    books = Ledger()
    app, begin = trip(books)
    async with Harness(app, START) as time:
        handle = await begin()
        await time.advance("1h")
        assert await handle.cancel()
        await time.drain()
        assert await handle.state() == "CANCELLED"
    assert books.effects == ["seat", "room"]


async def test_an_instance_without_anything_to_compensate_is_cancelled_at_once() -> None:
    app, books = Horai("shop"), Ledger()

    @app.job
    async def plain() -> None:
        await step("note", books.do, "note")
        await sleep("1h")

    async with Harness(app, START) as time:
        waiting = await plain.enqueue()
        await time.drain()
        assert await waiting.cancel(compensate=True)
        assert await waiting.state() == "CANCELLED"

        later = await plain.put("a", at=START + timedelta(hours=1))
        assert await plain.cancel("a", compensate=True)
        assert not await plain.cancel("a", compensate=True)
        assert await later.state() == "CANCELLED"

        done = await plain.enqueue()
        await time.advance("2h")
        assert not await done.cancel(compensate=True)


async def test_a_cancel_waits_for_the_step_that_runs_and_compensates_it() -> None:
    app, books = Horai("shop"), Ledger()

    async def charge(what: str) -> str:
        await app.handle(books.keys.pop()).cancel(compensate=True)
        return await books.do(what)

    @app.job
    async def checkout() -> None:
        await step("reserve", books.do, "shelf", compensate=books.undo)
        await step("charge", charge, "money", compensate=books.undo)
        await step("ship", books.do, "parcel")

    async with Harness(app, START) as time:
        handle = await checkout.enqueue()
        books.keys.append(handle.id)
        await time.drain()
        assert await handle.state() == "CANCELLED"
    assert books.effects == ["shelf", "money", "undo money", "undo shelf"]


async def test_a_cancelled_instance_whose_compensation_fails_becomes_a_dead_letter() -> None:
    books = Ledger(failing={"room"})
    app, begin = trip(books)
    async with Harness(app, START) as time:
        handle = await begin()
        await time.drain()
        await handle.cancel(compensate=True)
        await time.drain()
        assert "compensates its finished steps from" in (await app.jobs["trip"].explain(START)).why
        await time.advance("1h")
        with pytest.raises(InstanceFailed, match="COMPENSATION_FAILED"):
            await handle.result()
        assert "room#1 (ConnectionError: room is away); it was cancelled" in (await letter(time.database_url))[1]
    assert books.effects[-1] == "undo seat"


async def test_a_dying_function_survives_a_crash_at_every_boundary_of_its_compensations() -> None:
    done = dict[str, str]()

    async def do(what: str) -> str:
        done[step_key().partition(":")[2]] = what
        return what

    async def checkout() -> None:
        await step("reserve", do, "shelf", compensate=do)
        await step("charge", do, "money", compensate=do)
        await sleep("10m")
        raise Unrecoverable("no address")

    def effects() -> dict[str, str]:
        seen = dict(done)
        done.clear()
        return seen

    report: CrashReport = await crash_everywhere(checkout, effects=effects, dies=True)

    assert report.error == "Unrecoverable"
    assert report.effects == {
        "reserve:1": "shelf",
        "charge:1": "money",
        "charge:1:compensation": "money",
        "reserve:1:compensation": "shelf",
    }
    assert {
        f"{moment} compensation of {name}#1"
        for moment in ("before", "inside", "after")
        for name in ("charge", "reserve")
    } <= set(report.boundaries)


class Crashes:
    """Kills the worker at the boundaries with these numbers."""

    def __init__(self, workplace: Workplace, at: tuple[int, ...]) -> None:
        self._workplace = workplace
        self._at = set(at)
        self._seen = 0
        self.inside = 0

    def reach(self, call: Call, _: StepId, moment: str) -> None:
        self._seen += 1
        if self._seen in self._at:
            self.inside += moment == "inside"
            self._workplace.mishaps.lost.add((call.instance_id, call.fence))
            raise WorkerKilled


async def test_a_compensation_that_is_recorded_does_not_run_again_after_a_crash() -> None:
    app, books = Horai("shop"), Ledger()

    @app.job(retry=ONCE)
    async def checkout() -> None:
        await step("reserve", books.do, "shelf", compensate=books.undo)
        await step("charge", books.do, "money", compensate=books.undo)
        raise ValueError("no address")

    async with Harness(app, START) as time:
        after_the_first_compensation = 9  # each step and each compensation has three boundaries
        time.workplace.steps.boundary = Crashes(time.workplace, (after_the_first_compensation,)).reach
        with pytest.raises(InstanceFailed, match="no address"):
            await time.run(checkout)
        assert len(time.fired(checkout)) == 3
    assert books.effects == ["shelf", "money", "undo money", "undo shelf"]


@dataclass(frozen=True)
class Script:
    """A function of `steps` steps, those in `undoable` with a compensation, that dies after the last; and crashes of its worker."""

    steps: int
    undoable: frozenset[int]
    crashes: tuple[int, ...]


scripts = st.integers(0, 4).flatmap(
    lambda steps: st.builds(
        Script,
        st.just(steps),
        st.frozensets(st.integers(0, 3)),
        st.lists(st.integers(0, 30), max_size=3, unique=True).map(lambda drawn: tuple(sorted(drawn))),
    )
)


@settings(max_examples=200 if IS_LONG else 6)
@given(scripts)
def test_each_finished_step_with_a_compensation_is_recorded_as_compensated_once(script: Script) -> None:
    asyncio.run(_is_compensated_once(script))


async def _is_compensated_once(script: Script) -> None:
    app, books = Horai("shop"), Ledger()

    @app.job(retry=Retry(max=0, max_lost=1_000))
    async def checkout() -> None:
        for number in range(script.steps):
            undo = books.undo if number in script.undoable else None
            await step(f"s{number}", books.do, f"s{number}", compensate=undo)
        raise ValueError("no address")

    async with Harness(app, START) as time:
        crashes = Crashes(time.workplace, script.crashes)
        time.workplace.steps.boundary = crashes.reach
        with pytest.raises(InstanceFailed, match="no address"):
            await time.run(checkout, within="30d")
        connection = await asyncpg.connect(time.database_url)
        rows = await connection.fetch("select name, kind from horai.step where kind in (1, 4) and progress = 1")
        unfinished = await connection.fetchval("select count(*) from horai.step where progress <> 1")
        await connection.close()
    done = [f"s{number}" for number in range(script.steps)]
    undone = [name for number, name in enumerate(done) if number in script.undoable]
    assert sorted(row["name"] for row in rows if row["kind"] == 1) == done
    assert sorted(row["name"] for row in rows if row["kind"] == 4) == undone
    assert unfinished == 0
    assert list(dict.fromkeys(books.effects)) == [*done, *(f"undo {name}" for name in reversed(undone))]
    repeated = len(books.effects) - script.steps - len(undone)
    assert 0 <= repeated <= crashes.inside
