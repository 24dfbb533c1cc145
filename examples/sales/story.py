"""A week of sales, told by the running system: every line is something that was done and looked up."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from .jobs import app, daily, day_loaded, load_file
from .warehouse import connected, make_tables

Say = Callable[[str], None]
SHOPS = ("berlin", "lyon", "milan")
DAYS = 7
DAY = timedelta(days=1)
PATIENCE = 90.0
PAUSE = 0.05
BROKEN = 3
"""The number of the day whose file from Lyon has a wrong line."""


async def tell(say: Say) -> None:
    """The whole week, which ended yesterday."""
    first = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - (DAYS + 1) * DAY
    await make_tables()
    await app.declare()  # the worker does it too, and may not have come that far
    async with connected() as warehouse:
        for number in range(DAYS):
            day = (first + number * DAY).date()
            for shop in SHOPS:
                is_broken = (number, shop) == (BROKEN, "lyon")
                await warehouse.send(day, shop, ["100", "many" if is_broken else "50"])
        say(f"Every shop has sent a file for each of {DAYS} days: {await warehouse.books()}.")
        await one_day(say, first)
        say(f"   The first day is loaded: {await warehouse.books()}.")
        await the_week(say, first)
        say(f"   The week is loaded, without the day of the broken file: {await warehouse.books()}.")
        await warehouse.send((first + BROKEN * DAY).date(), "lyon", ["100", "50"])
        await the_broken_day(say)
        say(f"   All days are loaded, and no file twice: {await warehouse.books()}.")
        await the_ledger(say)


async def one_day(say: Say, first: datetime) -> None:
    """A run for a chosen day: a map over the files that its first node found."""
    run = await daily.run(logical_date=first + DAY + timedelta(hours=2))
    state = await run.wait(PATIENCE)
    node = (await run.read()).nodes[load_file.name]
    assert node.map is not None  # noqa: S101 — it is declared as a map
    say(f"1. A run of one day ends with {state}: {node.map.done} of {node.map.total} files, {node.map.failed} failed.")


async def the_week(say: Say, first: datetime) -> None:
    """A backfill runs the slots of the week, which were never made. The day that was run by hand is among them."""
    backfill = await daily.backfill(first + DAY, first + (DAYS + 1) * DAY, max_concurrency=3)
    done = await backfill.wait(PATIENCE)
    say(f"2. A backfill of the week ran {done.total} days, and {done.failed} of them did not end.")


async def the_broken_day(say: Say) -> None:
    """The shop sends the file again, and the run goes on from the map: the files that are loaded are loaded again."""
    (blocked,) = await daily.runs(limit=10, state="BLOCKED")
    (cause,) = (node for node in (await blocked.read()).nodes.values() if node.state == "DEAD")
    say(f"3. {cause.name} of one day is dead, and the shop sends its file again.")
    await blocked.rerun(from_node=load_file)
    say(f"   The run ends with {await blocked.wait(PATIENCE)}.")


async def the_ledger(say: Say) -> None:
    """Each run of a day updates an asset, which starts the second workflow."""
    async with asyncio.timeout(PATIENCE), connected() as warehouse:
        while await warehouse.ledger_days() < DAYS:  # noqa: ASYNC110 — the worker is another process
            await asyncio.sleep(PAUSE)
    updates = await day_loaded.updates(limit=100)
    say(f"4. The ledger has {DAYS} days: it was started by {len(updates)} updates of {day_loaded.name}.")
