"""Patroni's REST API, as far as a drill uses it: the view of a cluster, its health, and a move of the lead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import aiohttp

from horai.cli.errors import CommandFailed

LOOK = aiohttp.ClientTimeout(total=3.0)
MOVE = aiohttp.ClientTimeout(total=90.0)
"""Patroni answers when the lead has moved, or after its own limit."""
WELL = frozenset({"running", "streaming"})
SYNCHRONOUS = frozenset({"sync_standby", "quorum_standby"})
MOST_LAG = 16 * 1024 * 1024
"""Bytes that a standby may be behind before a drill."""


class LeadMove(StrEnum):
    """The way in which the lead is moved."""

    SWITCHOVER = "switchover"
    FAILOVER = "failover"


@dataclass(frozen=True, slots=True)
class PatroniMember:
    """One PostgreSQL of the cluster. `lag` is None if it is unknown."""

    name: str
    role: str
    state: str
    timeline: int | None
    lag: int | None
    may_lead: bool

    @property
    def is_leader(self) -> bool:
        """Return whether it is the primary."""
        return self.role == "leader"

    @property
    def is_synchronous(self) -> bool:
        """Return whether commits wait for it."""
        return self.role in SYNCHRONOUS


@dataclass(frozen=True, slots=True)
class PatroniView:
    """The cluster, as one of its members sees it."""

    name: str
    members: tuple[PatroniMember, ...]
    is_paused: bool = False
    has_plan: bool = False
    """True if a switchover is scheduled."""

    @property
    def leader(self) -> PatroniMember | None:
        """Return the primary; None if there is none."""
        return next((member for member in self.members if member.is_leader), None)

    @property
    def is_synchronous(self) -> bool:
        """Return whether commits wait for a standby."""
        return any(member.is_synchronous for member in self.members)

    @property
    def candidate(self) -> PatroniMember | None:
        """Return the standby that may take over: a synchronous one if there is any, then the one with the least lag."""
        fit = [each for each in self.members if not each.is_leader and each.state in WELL and each.may_lead]
        return min(fit, key=lambda each: (not each.is_synchronous, each.lag is None, each.lag or 0), default=None)


def faults_of(view: PatroniView) -> list[str]:
    """Return the reasons why the cluster is not healthy; none if a drill may begin."""
    faults = [f"{each.name} is in the state {each.state!r}" for each in view.members if each.state not in WELL]
    if view.leader is None:
        faults.append("it has no primary")
    if view.candidate is None:
        faults.append("it has no standby that may take over")
    if view.is_paused:
        faults.append("Patroni is paused")
    if view.has_plan:
        faults.append("a switchover is scheduled")
    for each in view.members:
        if each.is_leader:
            continue
        if view.leader is not None and each.timeline != view.leader.timeline:
            faults.append(f"{each.name} is on another timeline than the primary")
        if each.lag is None or each.lag > MOST_LAG:
            faults.append(f"{each.name} is {'an unknown number of' if each.lag is None else each.lag} bytes behind")
    return faults


def view_of(name: str, told: Mapping[str, Any]) -> PatroniView:
    """Read the answer of `GET /cluster`."""
    members = tuple(
        PatroniMember(
            str(each["name"]),
            str(each["role"]),
            str(each["state"]),
            each.get("timeline"),
            lag if isinstance(lag := each.get("lag"), int) else None,
            may_lead=not each.get("tags", {}).get("nofailover", False),
        )
        for each in told["members"]
    )
    return PatroniView(name, members, bool(told.get("pause")), "scheduled_switchover" in told)


@dataclass(frozen=True, slots=True)
class PatroniApi:
    """The members of a cluster, by the addresses that the operator gave. Any of them may answer."""

    session: aiohttp.ClientSession
    addresses: Sequence[str]

    async def view(self) -> PatroniView:
        """Return the cluster as the first member that answers sees it. Raises `CommandFailed` if none does."""
        _, view = await self._first()
        return view

    async def _first(self) -> tuple[str, PatroniView]:
        failures: list[str] = []
        for address in self.addresses:
            try:
                own = await self._get(f"{address}/patroni")
                told = await self._get(f"{address}/cluster")
                return address, view_of(str(own["patroni"]["scope"]), told)
            except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
                failures.append(f"{address}: {type(error).__name__} {error}".strip())
        raise CommandFailed(
            f"No Patroni answers: {'; '.join(failures)}.", "Give the address of its REST API: http://db1:8008."
        )

    async def _get(self, url: str) -> Any:
        async with self.session.get(url, timeout=LOOK) as response:
            return await response.json(content_type=None)

    async def move(self, how: LeadMove, leader: str, candidate: str) -> None:
        """Move the lead, and return when Patroni says that it has moved. Raises `CommandFailed` if Patroni refuses."""
        address, _ = await self._first()
        body = {"candidate": candidate} | ({"leader": leader} if how is LeadMove.SWITCHOVER else {})
        try:
            async with self.session.post(f"{address}/{how}", json=body, timeout=MOVE) as response:
                told = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise CommandFailed(f"Patroni did not answer the {how}: {type(error).__name__} {error}.") from error
        if response.status != 200:
            raise CommandFailed(f"Patroni refused the {how} to {candidate}: {response.status} {told.strip()}.")
