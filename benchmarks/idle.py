"""Idle: what a node asks of the database while nothing is due, counted from the server's own log."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks import backlog
from benchmarks.backlog import Spread
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting, sit_down
from horai.db.pool import connect
from horai.node import NodeSettings, run

WAITING, QUICK_WAITING = 1_000_000, 1_000
SWEEPER, ALERTS = "horai sweeper", "horai alerts"
"""The sweep, and the rule that watches waiting instances, look at the live table."""
HTTP = {"type": "http", "url": "http://127.0.0.1:9/"}
WINDOW, QUICK_WINDOW, SHORTEST_WINDOW = 120.0, 3.0, 1.0
SETTLING_DOWN, QUICK_SETTLING_DOWN = 10.0, 1.0
LOGGED = {"log_statement": "all", "log_min_duration_statement": "-1", "log_line_prefix": "%m|%a|"}
ENTRY = re.compile(r"^(\S+ \S+) UTC\|(horai[^|]*)\|LOG:  (?:statement|execute [^:]*): (.*)$", re.DOTALL)
NAMED = re.compile(r"/\* (\w+) \*/")
ONE_LOOK = 5.0
"""Seconds. Statements closer to each other belong to one look at the table."""


EVERYTHING_ON = """
do $$ begin
    insert into horai.sink (tenant_id, name, kind, place, batch, position) values (1, 'log', 'log', '{}', 1, horai.open_outbox());
    insert into horai.alert_channel (tenant_id, name, kind, language, config)
        values (1, 'ops', 'webhook', 'en', '{"url": "http://127.0.0.1:9/"}');
    insert into horai.alert_rule (tenant_id, name, kind, definition, wait, channels, group_wait, repeat_every)
        values (1, 'dead', 'INSTANCE_DEAD', '{}', null, array['ops'], interval '30 s', interval '4 h'),
            (1, 'blocked', 'RUN_BLOCKED', '{}', null, array['ops'], interval '30 s', interval '4 h'),
            (1, 'late', 'JOB_LATE', '{}', interval '5 minutes', array['ops'], interval '30 s', interval '4 h');
end $$
"""
"""A sink and alert rules, so that every stage of the leader has work to look for."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the node, as the server logged it."""

    at: datetime
    application: str
    text: str

    @property
    def is_look(self) -> bool:
        """Return true if the statement touches the live table."""
        return "instance_live" in self.text

    @property
    def name(self) -> str:
        """Its name in our catalogue, or how it begins."""
        named = NAMED.search(self.text)
        return f"{self.application}: {named[1] if named else self.text.split(maxsplit=1)[0]}"


async def sample(sitting: Sitting) -> Sample:
    """Statements a minute of a whole node with far-future work, and how often they look at `instance_live`."""
    window = max(sitting.size.wait(WINDOW, QUICK_WINDOW), SHORTEST_WINDOW)
    async with sit_down(sitting.size, LOGGED) as own, own.database("idle") as url:
        await backlog.make_jobs(url, target=HTTP)  # what this node can run: other lanes it would not even look at
        connection = await connect(url, "bench")
        waiting = sitting.size.wait(WAITING, QUICK_WAITING)
        await backlog.fill(connection, int(waiting), Spread(86_400.0, scatter=86_400.0))
        await connection.execute(EVERYTHING_ON)
        await connection.close()
        stop, ready = asyncio.Event(), asyncio.Event()
        settings = NodeSettings(Path("/nowhere"), port=0, database_url=url, name="bench")
        node = asyncio.create_task(run(settings, stop, lambda _: ready.set()))
        await asyncio.wait_for(ready.wait(), 30)
        await asyncio.sleep(sitting.size.wait(SETTLING_DOWN, QUICK_SETTLING_DOWN))
        before = own.server.log_path.stat().st_size
        await asyncio.sleep(window)
        logged = own.server.log_path.read_bytes()[before:]
        stop.set()
        await node
    statements = statements_of(logged.decode("utf-8", "replace"))
    for name, count in Counter(statement.name for statement in statements).most_common():
        print(f"    {count:4d} × {name}")
    others = sum(1 for statement in statements if statement.is_look and statement.application not in {SWEEPER, ALERTS})
    minutes = window / 60
    return {
        "idle statements": len(statements) / minutes,
        "idle looks": looks(statements) / minutes,
        "looks by others": others,
    }


def statements_of(log: str) -> list[Statement]:
    """The node's statements; a statement of several lines goes on after a tab."""
    entries = re.split(r"\n(?!\t)", log)
    found = [entry for entry in map(ENTRY.match, entries) if entry]
    return [Statement(datetime.fromisoformat(e[1]), e[2], e[3]) for e in found]


def looks(statements: list[Statement]) -> int:
    """Count the looks of the node at the live table; statements less than `ONE_LOOK` seconds apart are one look."""
    times = [statement.at for statement in statements if statement.is_look]
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    return sum(1 for gap in gaps if gap > ONE_LOOK) + bool(times)


SCENARIO = Scenario(
    "idle",
    "one node with a million far-future instances, a sink and alert rules; the sweep comes twice a minute",
    sample,
    (
        Line("idle statements", "/min", at_most=40.0),
        Line("idle looks", "/min at instance_live", at_most=2.5),
        Line("looks by others", "but the sweep and the rule of late jobs", at_most=0),
    ),
)
