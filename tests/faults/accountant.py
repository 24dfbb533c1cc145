"""The accountant: remembers what was promised to callers, and holds it against what the database has in the end.

The effect of a put is read from the record of its key: the key's instances in the order in which they ended (the live
one last), each with the time it was born for and then its reschedules in the order of their events. At most one is live
at a time, so that this order is the order in which the puts took effect, though puts overlapped on the way.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

import asyncpg

from horai.core.outcome import NODE_LOST, Bury, Complete, Decision, Release, RetryAt
from horai.core.put import PutDecision
from horai.db.claims import Claim, ClaimedRow
from horai.db.pool import Platform

SUCCESS, DEAD, CANCELLED = 2, 4, 5
USER, SUPERSEDED = 1, 2


@dataclass(frozen=True)
class Acknowledged:
    """A put that was answered. `at` is unlike that of any other put; `began` and `ended` count in one order."""

    key: str
    at: datetime
    version: int | None
    again: bool
    verdict: PutDecision
    instance_id: int
    began: int
    ended: int


@dataclass(frozen=True)
class ClaimSeen:
    """A claim that was answered."""

    row: ClaimedRow
    began: int


@dataclass(frozen=True)
class Ended:
    """A row of history as it was first seen."""

    values: tuple[Any, ...]


@dataclass
class Accountant:
    """One per job."""

    job_id: int
    puts: list[Acknowledged] = field(default_factory=list[Acknowledged])
    claims: list[ClaimSeen] = field(default_factory=list[ClaimSeen])
    reported: list[tuple[Claim, Decision]] = field(default_factory=list[tuple[Claim, Decision]])
    """The reports of actors, zombies among them, about claims of theirs."""
    settled: list[tuple[Claim, Decision]] = field(default_factory=list[tuple[Claim, Decision]])
    """The reports that the database said it had taken."""
    cancelled: set[int] = field(default_factory=set[int])
    finals: dict[int, Ended] = field(default_factory=dict[int, Ended])
    problems: list[str] = field(default_factory=list[str])
    _clock: int = 0

    def tick(self) -> int:
        """A moment, later than every one before."""
        self._clock += 1
        return self._clock

    async def look(self, connection: Platform) -> None:
        """At any time: one live row per key at most, and what is final stays as it was."""
        await self.look_at_live(connection)
        await self.look_at_past(connection)

    async def look_at_live(self, connection: Platform) -> None:
        """One live row per key at most."""
        live = await connection.fetch(
            "select key, count(*) from horai.instance_live where job_id = $1 group by key having count(*) > 1",
            self.job_id,
        )
        self.problems += [f"I4: key {row['key']} has {row['count']} live instances" for row in live]

    async def look_at_past(self, connection: Platform) -> None:
        """Check that a final row stays as it was: every row that was seen, in all its columns."""
        for row in await connection.fetch("select * from horai.instance_history where job_id = $1", self.job_id):
            seen = self.finals.setdefault(row["id"], Ended(tuple(row.values())))
            if seen.values != tuple(row.values()):
                self.problems.append(f"I1: instance {row['id']} was {seen.values} and is {tuple(row.values())}")
        if len(self.finals) != await connection.fetchval(
            "select count(*) from horai.instance_history where job_id = $1", self.job_id
        ):
            self.problems.append("I1: a final row is gone, or is there twice")

    async def audit(self, connection: Platform) -> list[str]:
        """In the end, when nothing is live any more."""
        await self.look(connection)
        past = await connection.fetch(
            "select * from horai.instance_history where job_id = $1 order by finished_at", self.job_id
        )
        told = await connection.fetch(
            "select instance_id, kind, data from horai.event where job_id = $1 and instance_id is not null"
            " order by instance_id, seq",
            self.job_id,
        )
        letters = await connection.fetch("select * from horai.dead_letter where job_id = $1", self.job_id)
        moved = _reschedules(told)
        for key in {put.key for put in self.puts} | {row["key"] for row in past}:
            self._audit_key(key, [row for row in past if row["key"] == key], moved)
        self._audit_letters(past, {row["instance_id"]: row["replay_status"] for row in letters})
        self._audit_claims({row["id"]: row for row in past})
        tries = await connection.fetch("select * from horai.attempt where job_id = $1", self.job_id)
        self._audit_reports(past, tries, told)
        return self.problems

    def _audit_key(self, key: str, chain: Sequence[asyncpg.Record], moved: Mapping[int, Sequence[datetime]]) -> None:
        puts = [put for put in self.puts if put.key == key]
        accepted = {put.at: put for put in puts if put.verdict is not PutDecision.IGNORED}
        record = [(row["id"], at) for row in chain for at in (row["born_for"], *moved.get(row["id"], ()))]
        position = {at: index for index, (_, at) in enumerate(record)}
        for put in accepted.values():
            if (put.instance_id, put.at) not in record:
                self.problems.append(f"I3: swallowed: {put}")
        self.problems += [f"nobody asked for {at} of key {key}" for _, at in record if at not in accepted]
        if self.problems:
            return
        if len(position) != len(record) or len(record) != len(accepted):
            self.problems.append(f"a put of key {key} took effect twice: {record}")
        for row in chain:
            if row["fire_time"] != [at for instance, at in record if instance == row["id"]][-1]:
                self.problems.append(f"I3: instance {row['id']} ended for {row['fire_time']}, not for its last put")
        self._audit_order([accepted[at] for _, at in record])
        self._audit_heads(chain, accepted)
        self._audit_ignored(chain, [put for put in puts if put.verdict is PutDecision.IGNORED], accepted)
        self._audit_seen(key, position)

    def _audit_order(self, record: Sequence[Acknowledged]) -> None:
        """A put that began after another one was answered takes effect after it; versions never fall."""
        highest: int | None = None
        latest_begin = 0
        for put in record:
            if put.ended < latest_begin:
                self.problems.append(f"out of order: {put}")
            latest_begin = max(latest_begin, put.began)
            if put.version is not None:
                if highest is not None and put.version < highest:
                    self.problems.append(f"accepted although version {highest} was in force: {put}")
                highest = max(put.version, highest or 0)

    def _audit_heads(self, chain: Sequence[asyncpg.Record], accepted: Mapping[datetime, Acknowledged]) -> None:
        """Check the birth of each instance against the end of the one before it.

        The last of all stands for the last intent.
        """
        for earlier, later in pairwise(chain):
            birth = accepted[later["born_for"]]
            is_superseded = earlier["state"] == CANCELLED and earlier["reason"] == SUPERSEDED
            if is_superseded != (birth.verdict is PutDecision.SUPERSEDED) or is_superseded != (
                later["supersedes"] == earlier["id"]
            ):
                self.problems.append(f"{earlier['id']} ended {earlier['state']}, and then {birth}")
            if any(row["state"] == SUCCESS for row in chain[: chain.index(later)]) and not (
                birth.again or is_superseded
            ):
                self.problems.append(f"runs after a success without `again`: {birth}")
        if chain and chain[-1]["state"] == CANCELLED and chain[-1]["id"] not in self.cancelled:
            self.problems.append(f"lost: instance {chain[-1]['id']} was cancelled by nobody and has no successor")

    def _audit_ignored(
        self,
        chain: Sequence[asyncpg.Record],
        ignored: Sequence[Acknowledged],
        accepted: Mapping[datetime, Acknowledged],
    ) -> None:
        """A put may be ignored for an older version than one in force, or for a success."""
        has_succeeded = any(row["state"] == SUCCESS for row in chain)
        for put in ignored:
            versions = [p.version for p in accepted.values() if p.version is not None and p.began < put.ended]
            is_outdated = put.version is not None and any(put.version < version for version in versions)
            if not is_outdated and (put.again or not has_succeeded):
                self.problems.append(f"I3: ignored without a reason: {put}")

    def _audit_seen(self, key: str, position: Mapping[datetime, int]) -> None:
        """A claim sees every put that was answered before it began."""
        for claim in self.claims:
            if claim.row.key != key:
                continue
            for put in self.puts:
                is_known = put.key == key and put.verdict is not PutDecision.IGNORED and put.ended < claim.began
                if is_known and position[claim.row.fire_time] < position[put.at]:
                    self.problems.append(f"I3: {claim.row.held} ran for {claim.row.fire_time} after {put}")

    def _audit_letters(self, past: Sequence[asyncpg.Record], letters: Mapping[int, str]) -> None:
        """A letter waits for replay only while its key has no newer intent."""
        for index, row in enumerate(past):
            if row["state"] == DEAD:
                has_newer = any(later["key"] == row["key"] for later in past[index + 1 :])
                if letters.get(row["id"]) != ("SUPERSEDED" if has_newer else "NEW"):
                    self.problems.append(f"letter of {row['id']} is {letters.get(row['id'])}, newer: {has_newer}")

    def _audit_claims(self, past: Mapping[int, asyncpg.Record]) -> None:
        """Check B5: a claim is handed out once, and settled at most once, by its holder. A release gives its attempt back."""
        for name, values in (
            ("claimed", [(claim.row.held.id, claim.row.held.fence) for claim in self.claims]),
            ("settled", [(held.id, held.fence) for held, _ in self.settled]),
        ):
            if len(values) != len(set(values)):
                self.problems.append(f"B5: {name} twice: {sorted(values)}")
        for held, decision in self.settled:
            ended = past[held.id]
            claim = (ended["attempt"], ended["fence"], ended["node"])
            wanted = SUCCESS if isinstance(decision, Complete) else DEAD if isinstance(decision, Bury) else None
            if wanted is not None and (ended["state"] != wanted or claim != (held.attempt, held.fence, held.node)):
                self.problems.append(f"I2: {held} {decision} was taken, yet it is {tuple(ended.values())}")
        for instance_id in self.cancelled:
            if (past[instance_id]["state"], past[instance_id]["reason"]) != (CANCELLED, USER):
                self.problems.append(f"I1: {instance_id} was cancelled and is {past[instance_id]['state']}")

    def _audit_reports(
        self, past: Sequence[asyncpg.Record], tries: Sequence[asyncpg.Record], told: Sequence[asyncpg.Record]
    ) -> None:
        """Check I2: the end of a claim was reported by its own holder; a rescue speaks only for a lost node."""
        said = {(held.id, held.fence, type(decision)) for held, decision in self.reported}
        said_of_attempt = {(held.id, held.attempt, type(decision)) for held, decision in self.reported}
        ends = {SUCCESS: Complete, DEAD: Bury}
        for row in past:
            is_lost = row["error_code"] == NODE_LOST
            if row["state"] in ends and not is_lost and (row["id"], row["fence"], ends[row["state"]]) not in said:
                self.problems.append(f"I2: nobody said that {row['id']} with fence {row['fence']} is {row['state']}")
        for row in tries:
            kinds = {"SUCCESS": (Complete,), "FAIL": (RetryAt, Bury), "LOST": (), "DEAD": (Bury,)}[row["outcome"]]
            if row["error_code"] != NODE_LOST and not any(
                (row["instance_id"], row["fence"], kind) in said for kind in kinds
            ):
                self.problems.append(f"I2: nobody said {tuple(row.values())}")
        for row in told:
            if row["kind"] == "INSTANCE_RELEASED":
                attempt = json.loads(row["data"])["attempt"]
                if (row["instance_id"], attempt, Release) not in said_of_attempt:
                    self.problems.append(f"I2: nobody has released attempt {attempt} of {row['instance_id']}")


def _reschedules(told: Sequence[asyncpg.Record]) -> dict[int, list[datetime]]:
    moved: dict[int, list[datetime]] = {}
    for row in told:
        if row["kind"] == "INSTANCE_RESCHEDULED":
            at = datetime.fromisoformat(json.loads(row["data"])["executeTime"])
            moved.setdefault(row["instance_id"], []).append(at)
    return moved
