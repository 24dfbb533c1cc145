"""The stage that evaluates the rules of the governor.

One node evaluates, the owner of the first trigger shard; a writer locks the governor's row and reads the figures
after that, so a second one does not write by old figures. While instances start, fail or wait, or a mode is active, it
looks every 10 seconds, otherwise once a minute. A look is one statement that reads the last heartbeats of all processes; only a change writes.
When retries are not limited any more, it releases those that wait for their turn; if the node dies before, they wait for
at most 5 minutes more.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

from horai.core.health import Reading
from horai.core.shards import Role
from horai.core.wakes import EverywhereWake, NodesWake
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.governor import store
from horai.features.governor.rules import Track, controls_of
from horai.features.governor.service import evaluate_now, next_look, release_retries
from horai.features.governor.store import Governor
from horai.features.parts import StageParts

QUIET = 6
"""A quiet system is looked at this many times less often."""
KEPT_CHANGES = timedelta(days=90)
FORGET_EVERY = timedelta(hours=6)


class GovernorStage:
    """The stage that evaluates."""

    name = "governor"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, lease: Lease, wakeups: Wakeups, every: timedelta, now: datetime) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._every = every
        self._forget_at = now + FORGET_EVERY
        self._limited_retries = False
        """Retries were limited at the last look."""

    async def step(self, now: datetime) -> datetime:
        """Evaluate once. Return the time of the next look."""
        if not leads(self._lease):
            return now + self._every * QUIET
        connection = await self.line.get()
        governor = await evaluate_now(connection)
        limits_retries = controls_of(governor.state, governor.thresholds).limits_retries
        if self._limited_retries and not limits_retries and await release_retries(connection):
            self._wakeups.publish(EverywhereWake())
        self._limited_retries = limits_retries
        if now >= self._forget_at:
            await store.forget_mode_changes(connection, KEPT_CHANGES)
            self._forget_at = now + FORGET_EVERY
        return next_look(governor, self._every if _is_busy(governor) else self._every * QUIET)


def _is_busy(governor: Governor) -> bool:
    """Return whether a rule may change soon: something happened in the last minutes, or a track is not at rest."""
    reading: Reading = governor.reading
    has_work = bool(reading.recent_delays or reading.failed or reading.dead_last_minute or reading.oldest_wait)
    return has_work or any(track != Track() for track in governor.state.tracks.values())


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    stage = GovernorStage(parts.line("governor"), parts.lease, parts.wakeups, parts.settings.governor_every, parts.now)
    parts.lease.on_change.append(stage.signal.set)
    parts.wakeups.subscribe(NodesWake, lambda _: stage.signal.set())  # a change of the governor notifies all nodes
    return [stage]
