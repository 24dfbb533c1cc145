"""An afternoon at the desk, told by the running system: every line is something that was done and looked up."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
from sqlalchemy import func, select, text

from . import desk
from .tables import URL, Exhibition, Letter, Status, make_tables, sessions

Say = Callable[[str], None]
PATIENCE = 30.0
LATER, SOON = timedelta(hours=1), timedelta(seconds=1)
VISITORS = 5


class Ears:
    """Hears on the channel of wakes who is told of work; what processes say of themselves there is left out."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection
        self._wakes: list[str] = []

    def hear(self, _: Any, __: int, ___: str, said: Any) -> None:
        """Something was committed. Wakes for work begin with `w:`."""
        self._wakes += [wake for wake in said.split() if wake.startswith("w:")]

    async def count(self) -> int:
        """Count the wakes so far, including those of all transactions that were committed before this call."""
        await self._connection.fetchval("select 1")
        return len(self._wakes)


@asynccontextmanager
async def listening() -> AsyncGenerator[Ears]:
    """From now on."""
    connection = await asyncpg.connect(os.environ[URL])
    ears = Ears(connection)
    await connection.add_listener("horai_wake", ears.hear)
    try:
        yield ears
    finally:
        await connection.close()


async def planned() -> dict[str, int]:
    """Count the starts of enrolment that Horai knows, by state."""
    question = text(
        "select state, count(*) from horai.job_instance where key like 'exhibition:%' group by 1 order by 1"
    )
    async with sessions() as session:
        return dict((await session.execute(question)).tuples().all())


async def tell(say: Say) -> None:
    """The whole afternoon."""
    await make_tables()
    exhibitions = await twenty_approvals(say)
    await a_change_of_mind_that_is_taken_back(say, exhibitions[0])
    await enrolment_starts(say, exhibitions[:3])
    await withdrawn(say, exhibitions[3])
    say(f"Horai: {await planned()}")


async def twenty_approvals(say: Say) -> list[int]:
    """Each in a transaction of its own, for an hour from now."""
    say("1. Twenty exhibitions are approved; enrolment starts in an hour.")
    async with sessions.begin() as session:
        at = datetime.now(UTC) + LATER
        exhibitions = [await desk.submit(session, f"Exhibition {n}", at, VISITORS) for n in range(1, 21)]
    async with listening() as ears:
        for exhibition in exhibitions:
            async with sessions.begin() as session:
                await desk.approve(session, exhibition)
        say(f"Horai: {await planned()}; wakes on the channel: {await ears.count()}")
    return exhibitions


async def a_change_of_mind_that_is_taken_back(say: Say, exhibition: int) -> None:
    """The transaction is rolled back: the exhibition stands where it stood, and so does its plan."""
    say(f"2. Exhibition {exhibition} is moved to now, and the transaction is rolled back.")
    async with listening() as ears:
        async with sessions() as session:
            decision = await desk.move(session, exhibition, datetime.now(UTC))
            await session.rollback()
        say(f"Horai had said {decision}; now: {await planned()}; wakes on the channel: {await ears.count()}")


async def enrolment_starts(say: Say, exhibitions: list[int]) -> None:
    """Moved and committed: the commit wakes the worker."""
    say(f"3. Exhibitions {exhibitions} are moved to one second from now.")
    async with listening() as ears:
        for exhibition in exhibitions:
            async with sessions.begin() as session:
                decision = await desk.move(session, exhibition, datetime.now(UTC) + SOON)
            say(f"exhibition {exhibition}: {decision}; wakes on the channel: {await ears.count()}")
    await until_letters(len(exhibitions) * VISITORS)
    async with sessions() as session:
        enrolling = await session.scalars(
            select(Exhibition.id).filter_by(status=Status.ENROLLING).order_by(Exhibition.id)
        )
        say(f"ENROLLING: {list(enrolling)}; every one of their {VISITORS} visitors has a letter")


async def until_letters(count: int) -> None:
    """Returns when so many were written."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with sessions() as session:
                written = await session.scalar(select(func.count()).select_from(Letter))
            if written == count:
                return
            await asyncio.sleep(0.02)


async def withdrawn(say: Say, exhibition: int) -> None:
    """Withdrawn and cancelled at once."""
    say(f"4. Exhibition {exhibition} is withdrawn.")
    async with sessions.begin() as session:
        is_cancelled = await desk.withdraw(session, exhibition)
    say(f"its start is {'cancelled' if is_cancelled else 'not to be found'}")
