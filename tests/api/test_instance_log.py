"""The log of a function is shown with the attempt that wrote it."""

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import make
from harness import Client

from api import given
from horai.api.instance_detail import LINES_SHOWN
from horai.core.calls import Call, WorkerTarget
from horai.core.limits import SHARDS
from horai.core.log_levels import stored_line
from horai.core.outcome import Bury, Complete, Release, RetryAt
from horai.core.progress import ProgressNotes
from horai.db import claims, nodes
from horai.db import progress as notes
from horai.db.claims import Claim, ClaimedBy, LateResult, Position
from horai.db.pool import Platform

SECOND = timedelta(seconds=1)


@dataclass(slots=True)
class Worker:
    """Claims one job's instances by hand, says things, and settles."""

    api: Client
    db: Platform
    job: Any
    node: int
    notebook: ProgressNotes = field(default_factory=ProgressNotes)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def claim(self) -> Claim:
        lane = await self.db.fetchval("select lane_id from horai.job where id = $1", int(self.job["id"]))
        positions = [Position(shard, lane, make.LONG_AGO, -1) for shard in range(SHARDS)]
        by = ClaimedBy(self.node, next(self.numbers), await nodes.database_time(self.db))
        (row,) = await claims.claim_due(self.db, by, positions, [1] * SHARDS)
        return row.held

    async def say(self, held: Claim, progress: float | None, message: str | None = None) -> None:
        now = await nodes.database_time(self.db)
        target, name = WorkerTarget(self.job["name"]), self.job["name"]
        call = Call(
            held.id, held.job_id, name, "default", None, now, now, held.attempt, held.fence, now, 0, None, target, None,
            (), held.node,
        )  # fmt: skip
        self.notebook.add(call, now, progress, message)
        await notes.insert_notes(self.db, self.notebook.take(10_000))

    async def shown(self, held: Claim) -> Any:
        return await given.read(self.api, {"id": str(held.id)})


async def worker(api: Client, db: Platform) -> Worker:
    """One whose job has an instance that is due."""
    name = given.name("function")
    made = await api("POST", "/api/v1/jobs", {"name": name, "target": {"type": "worker", "handler": name}})
    assert made.status == 201, made.json
    await given.put(api, made.json, "k", None)
    return Worker(api, db, made.json, await make.node(db))


def said(attempt: Any) -> list[tuple[float | None, str]]:
    return [(line["progress"], line["message"]) for line in attempt["log"]]


async def test_a_running_instance_shows_its_progress_and_log(api: Client, db: Platform) -> None:
    on = await worker(api, db)
    held = await on.claim()
    before = await nodes.database_time(db)
    await on.say(held, 0.25)
    await on.say(held, None, "opened the file\nof today")
    await on.say(held, 0.5, "half of it")
    await on.say(held, None, stored_line("slow", "WARNING"))

    shown = await on.shown(held)

    (attempt,) = shown["attempts"]
    assert (shown["state"], shown["progress"]) == ("RUNNING", 0.5)
    assert (attempt["outcome"], attempt["progress"]) == ("RUNNING", 0.5)
    assert said(attempt) == [(None, "opened the file\nof today"), (0.5, "half of it"), (None, "slow")]
    assert [line["level"] for line in attempt["log"]] == ["INFO", "INFO", "WARNING"]
    assert before.isoformat()[:10] in attempt["log"][0]["at"]


async def test_each_attempt_shows_what_it_said_itself(api: Client, db: Platform) -> None:
    on = await worker(api, db)
    first = await on.claim()
    await on.say(first, 0.9, "almost")
    await claims.fail_if_running(db, [(first, RetryAt(timedelta(0), "KeyError", "'x'"))])
    waiting = await on.shown(first)
    second = await on.claim()
    await on.say(second, 0.1, "again")
    await claims.finish_if_running(db, on.node, [(second, Complete())])

    shown = await on.shown(first)

    assert (waiting["state"], waiting["progress"]) == ("FAIL", 0.9)
    assert [(a["outcome"], a["progress"], said(a)) for a in shown["attempts"]] == [
        ("FAIL", 0.9, [(0.9, "almost")]),
        ("SUCCESS", 0.1, [(0.1, "again")]),
    ]
    assert shown["progress"] == 0.1


async def test_an_attempt_that_was_given_back_is_shown_for_what_it_said_and_not_otherwise(
    api: Client, db: Platform
) -> None:
    on = await worker(api, db)
    silent = await on.claim()
    await claims.release_if_running(db, [(silent, Release())])
    spoken = await on.claim()
    await on.say(spoken, None, "the shop is closed")
    await claims.release_if_running(db, [(spoken, Release())])
    waiting = await on.shown(silent)
    last = await on.claim()
    await claims.bury_if_running(db, [(last, Bury("ValueError", "no"))])

    shown = await on.shown(silent)

    (released,) = waiting["attempts"]
    assert (waiting["state"], released["outcome"], released["attempt"]) == ("INIT", "RELEASED", 1)
    assert [(a["attempt"], a["outcome"], said(a)) for a in shown["attempts"]] == [
        (1, "RELEASED", [(None, "the shop is closed")]),
        (2, "DEAD", []),
    ]
    assert [a["finishedAt"] is None for a in shown["attempts"]] == [True, False]


async def test_log_lines_that_a_function_writes_after_its_cancellation_are_shown_once(
    api: Client, db: Platform
) -> None:
    on = await worker(api, db)
    held = await on.claim()
    await on.say(held, 0.5)
    await api("POST", f"/api/v1/instances/{held.id}/cancel")
    await on.say(held, 1.0, "done all the same")
    await claims.keep_late(db, [LateResult(held, "SUCCESS", None, None)])

    shown = await on.shown(held)

    assert [(a["outcome"], a["late"], a["progress"], said(a)) for a in shown["attempts"]] == [
        ("SUCCESS", True, None, []),
        ("CANCELLED", False, 1.0, [(1.0, "done all the same")]),
    ]


async def test_a_long_log_shows_its_end(api: Client, db: Platform) -> None:
    on = await worker(api, db)
    held = await on.claim()
    await on.say(held, 0.75)
    for number in range(LINES_SHOWN + 20):
        await on.say(held, None, str(number))

    shown = await on.shown(held)

    lines = [message for _, message in said(shown["attempts"][0])]
    assert lines == [str(number) for number in range(20, LINES_SHOWN + 20)]
    assert shown["progress"] == 0.75


async def test_an_attempt_without_messages_has_an_empty_log(api: Client, db: Platform) -> None:
    on = await worker(api, db)
    held = await on.claim()

    shown = await on.shown(held)

    assert (shown["progress"], shown["attempts"][0]["progress"], shown["attempts"][0]["log"]) == (None, None, [])
    listed = await given.listed(api, f"/api/v1/jobs/{on.job['id']}/instances")
    assert "log" not in str(listed)
