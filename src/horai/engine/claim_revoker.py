"""The claim revoker: the stage that tells executors that a claim was cancelled, replaced or settled while it ran.

A wake alone does not end a claim: every client of the database may notify, and that must not break off running work.
The stage trusts only the row. The sweeper makes up for a lost wake.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice

from horai.core.wakes import OutcomeWake
from horai.db import claims
from horai.db.stage_connection import StageConnection
from horai.engine.dispatch.in_flight import InFlight

IDLE = timedelta(minutes=1)
BATCH = 1_000

EndListener = Callable[[int, int], None]


class ClaimRevoker:
    """The stage that revokes claims. It queries the database only after a wake for a claim in flight."""

    name = "claim_revoker"

    def __init__(self, line: StageConnection, in_flight: InFlight) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._in_flight = in_flight
        self._listeners: list[EndListener] = []
        self._heard: dict[tuple[int, int], None] = {}

    def listen(self, listener: EndListener) -> None:
        """Call `listener` with (instance id, fence) for each claim in flight that has ended, in the loop's thread."""
        self._listeners.append(listener)

    def hear(self, wake: OutcomeWake) -> None:
        """Record a wake. Ignore it if the claim is not in flight here."""
        if self._in_flight.find(wake.instance_id, wake.fence) is not None:
            self._heard[wake.instance_id, wake.fence] = None
            self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Check the recorded claims in the database and tell listeners about those that have ended."""
        heard = list(islice(self._heard, BATCH))
        held = [claim for one in heard if (claim := self._in_flight.find(*one)) is not None]
        ended = await claims.ended_claims(await self.line.get(), held) if held else set[tuple[int, int]]()
        for one in heard:
            del self._heard[one]
        for claim in ended:
            for listener in self._listeners:
                listener(*claim)
        return now if self._heard else now + IDLE
