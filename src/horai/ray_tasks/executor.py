"""The executor of one job with `executor="ray"`: a task takes a place of the worker like any other call."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from horai.core.calls import Call
from horai.core.outcome import Lost, NotSent, Outcome
from horai.ray_tasks.tasks import UNREACHABLE, RayTasks
from horai.sdk.functions import Crew
from horai.sdk.instance import Instance


class RayFunction:
    """Runs the attempts of a function as Ray tasks with these `options`."""

    def __init__(self, tasks: RayTasks, crew: Crew, handler: str, options: Mapping[str, float]) -> None:
        self._tasks = tasks
        self._crew = crew
        self._handler = handler
        self._options = options

    async def run(self, call: Call) -> Outcome | Lost:
        """Run an attempt and return its outcome. Raises only if cancelled."""
        if not self._tasks.is_reached:
            return UNREACHABLE
        crew, instance = self._crew, Instance(call, _as_it_is)
        crew.begin(call, instance)
        if not crew.enter(self._handler) and not await self._turn(call, instance):
            return NotSent() if self._tasks.is_reached else UNREACHABLE
        try:
            return await self._tasks.run(call, self._handler, self._options)
        finally:
            instance.end()
            crew.end(call)
            crew.leave(self._handler)

    async def _turn(self, call: Call, instance: Instance[Any]) -> bool:
        """Wait for a place. Return False, without a place, if the claim or the cluster is lost before."""
        turn = asyncio.ensure_future(self._crew.turn(self._handler, call, instance))
        try:
            await asyncio.wait({turn, self._tasks.gone}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._give_up(turn, call)
            raise
        if turn.done():
            return turn.result()
        await self._give_up(turn, call)
        return False

    async def _give_up(self, turn: "asyncio.Task[bool]", call: Call) -> None:
        """Leave the line. A place that was given in the same moment goes to the next call."""
        turn.cancel()
        with suppress(asyncio.CancelledError):
            if await turn:
                self._crew.end(call)
                self._crew.leave(self._handler)


def _as_it_is(payload: str | None) -> str | None:
    return payload
