"""The engine is asked to move rows when one answer cannot wait for all of them."""

import asyncio

import make
import pytest

from horai.core.wakes import MoveWaitingWake
from horai.operations import jobs


async def test_a_relane_that_does_not_fit_into_an_answer_is_asked_of_the_engine(
    url: str, monkeypatch: pytest.MonkeyPatch, runner: asyncio.Runner
):
    monkeypatch.setattr("horai.operations.move_waiting.BATCH", 2)
    async with make.scope(url) as scope:
        asked = list[None]()
        scope.wakeups.subscribe(MoveWaitingWake, lambda _: asked.append(None))
        await make.job(scope)
        await make.many(scope, 5)
        await jobs.pause_job(scope, "publish", None)
        await jobs.change_job(scope, "publish", jobs.JobChange({"tags": ["seen"]}))
        assert asked == [], "five rows fit into one answer"

        await make.many(scope, 30)
        await jobs.resume_job(scope, "publish", None)
        assert asked == [None]
