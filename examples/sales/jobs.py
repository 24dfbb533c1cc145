"""The pipeline of each day: find its files, load each of them, write the report. `horai worker examples.sales.jobs:app` runs it."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from horai import Horai, Instance, Map, Misfire, Node, Retry, Unrecoverable

from .warehouse import connected

app = Horai("sales")
day_loaded = app.asset("sales.day")
"""Updated by each run of a day that succeeds; its data interval is that day."""


@dataclass
class File:
    """One file of a day, which one shop has sent."""

    day: date
    shop: str


@app.job(owner="data team", title="Find the files of a day")
async def find_files(instance: Instance[Any]) -> list[File]:
    """The day is the one that the run stands for: the start of its data interval."""
    day = instance.interval.start.date()
    async with connected() as warehouse:
        return [File(day, shop) for shop in await warehouse.shops_of(day)]


@app.job(queue="loads", retry=Retry(max=2, base="100ms"), timeout="1m", owner="data team", title="Load a file")
async def load_file(file: File) -> int:
    """Runs once for each file. A second run of the same file replaces the first: loading is idempotent."""
    async with connected() as warehouse:
        lines = await warehouse.lines_of(file.day, file.shop)
        if not all(line.isdecimal() for line in lines):
            raise Unrecoverable(f"the file of {file.shop} of {file.day} has a line that is not a number")
        return await warehouse.load(file.day, file.shop, sum(map(int, lines)))


@app.job(owner="data team", title="Write the report of a day")
async def report(instance: Instance[Any]) -> int:
    """Returns the cents of the day. The results of the files are those of the map."""
    day = instance.interval.start.date()
    async with connected() as warehouse:
        return await warehouse.write_report(day, sum(instance.payload["parents"]["load_file"]))


daily = app.workflow(
    "daily-sales",
    [
        Node(find_files),
        Node(load_file, after=[find_files], map=Map(over=find_files, max_concurrency=10)),
        Node(report, after=[load_file]),
    ],
    produces=[day_loaded],
    cron="0 2 * * *",
    misfire=Misfire("once"),
)


@app.job(owner="finance", title="Sum up what was loaded")
async def sum_up(instance: Instance[Any]) -> list[str]:
    """Runs when a day was loaded, also one of a backfill. Days that are loaded while it runs are summed up together."""
    days = sorted({update.interval.start.date() for update in instance.assets[day_loaded.name] if update.interval})
    async with connected() as warehouse:
        await warehouse.sum_up(days)
    return [str(day) for day in days]


ledger = app.workflow("ledger", [Node(sum_up)], when=[day_loaded], overlap="queue")
