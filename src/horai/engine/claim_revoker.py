"""Tells executors that a claim of theirs is over: it was cancelled, replaced or settled while it ran.

A wake is not enough: anybody who may connect to the database may notify, and nobody's work is to be broken off by that.
Only the row is believed. A wake that got lost is made up for by the sweeper.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice

from horai.db import claims
from horai.db.stage_connection import StageConnection
from horai.engine.dispatch.in_flight import InFlight

IDLE = timedelta(minutes=1)
BATCH = 1_000

EndListener = Callable[[int, int], None]


class ClaimRevoker:
    """The stage that tells. Without a wake of a claim in hand it asks nothing of the database."""

    name = "claim_revoker"

    def __init__(self, line: StageConnection, holdings: InFlight) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._holdings = holdings
        self._listeners: list[EndListener] = []
        self._heard: dict[tuple[int, int], None] = {}

    def listen(self, listener: EndListener) -> None:
        """From now on `listener` is told (instance id, fence) of every claim in hand that is over, in the loop's thread."""
        self._listeners.append(listener)

    def hear(self, instance_id: int, fence: int) -> None:
        """Takes note of a wake. What is not in hand here is not asked after."""
        if self._holdings.find(instance_id, fence) is not None:
            self._heard[instance_id, fence] = None
            self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Asks the database about what it has heard of, and tells of what is over."""
        heard = list(islice(self._heard, BATCH))
        held = [claim for one in heard if (claim := self._holdings.find(*one)) is not None]
        ended = await claims.ended_claims(await self.line.get(), held) if held else set[tuple[int, int]]()
        for one in heard:
            del self._heard[one]
        for claim in ended:
            for listener in self._listeners:
                listener(*claim)
        return now if self._heard else now + IDLE
