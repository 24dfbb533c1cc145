"""Authors who change their minds: several clients of one unit, each with wishes of its own around the moment it is due."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from harness import Client

from faults.accountant import Accountant, Acknowledged
from horai.core.put import PutDecision

CLIENTS = 3
SAID = ((-900, -600), (-350, -50), (-150, 1_100))
"""When each of a client's wishes is said: between so many milliseconds from the unit's own moment."""
MEANT = range(-50, 400)
"""The times that a wish may ask for, in milliseconds from the unit's own moment."""


@dataclass(frozen=True)
class Wish:
    """At `said_at` a client asks for `at`, which no other wish of the unit asks for."""

    said_at: datetime
    at: datetime


def wishes(moment: datetime, dice: random.Random) -> list[list[Wish]]:
    """Those of each client for a unit that is due at about `moment`, to whole milliseconds as the API takes them."""
    times = iter(dice.sample(MEANT, CLIENTS * len(SAID)))
    return [
        [
            Wish(moment + timedelta(milliseconds=dice.uniform(*said)), moment + timedelta(milliseconds=next(times)))
            for said in SAID
        ]
        for _ in range(CLIENTS)
    ]


@dataclass(frozen=True)
class Author:
    """A client of a unit, at one door; the accountant hears of every answer it gets."""

    door: Client
    job: str
    key: str
    accountant: Accountant

    async def say(self, wishes: Sequence[Wish]) -> None:
        """One wish after the other, each when its time has come and the one before is answered."""
        for wish in wishes:
            await asyncio.sleep(max((wish.said_at - datetime.now(UTC)).total_seconds(), 0))
            await self._put(wish.at)

    async def _put(self, at: datetime) -> None:
        began = self.accountant.tick()
        reply = await self.door("PUT", f"/api/v1/jobs/{self.job}/instances/{self.key}", {"executeTime": at.isoformat()})
        assert reply.status in {200, 201}, reply.json
        verdict, instance_id = PutDecision(reply.json["decision"]), int(reply.json["instance"]["id"])
        if verdict is PutDecision.IGNORED:
            assert reply.json["instance"]["state"] == "SUCCESS", "only what has happened is left alone"
        self.accountant.puts.append(
            Acknowledged(self.key, at, None, False, verdict, instance_id, began, self.accountant.tick())
        )
