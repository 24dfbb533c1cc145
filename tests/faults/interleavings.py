"""Operations on a few keys of one job, run many at a time over real connections against real PostgreSQL."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import make
from databases import Superuser, superuser
from stages import FixedLease

from faults.accountant import Accountant, Acknowledged, ClaimSeen
from horai.core.errors import NotFound
from horai.core.health import EngineHealth
from horai.core.limits import SHARDS
from horai.core.outcome import Bury, Complete, Decision, Release, RetryAt
from horai.core.put import PutDecision, PutOptions
from horai.core.settings import EngineSettings
from horai.db import claims, nodes, settlements
from horai.db.claims import Claim, ClaimedBy, ClaimedRow, Position
from horai.db.jobs import JobRow
from horai.db.pool import LOOP_LOCK_TIMEOUT, retrying
from horai.db.stage_connection import StageConnection
from horai.db.verify import verify
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.rescuer import Rescuer
from horai.engine.settler import LOCK_TIMEOUT, Settlement, Settler
from horai.operations import instances
from horai.operations.put import Put, put_all
from horai.operations.scope import Scope

LANES_WIDE = 8
"""Maximum number of operations that run at a time."""
NODES = 2
MILLISECOND = timedelta(milliseconds=1)
SETTINGS = EngineSettings(settle_wait=timedelta(0))

DECISIONS: dict[str, Callable[[], Decision]] = {
    "finish": lambda: Complete('{"done": true}'),
    "fail": lambda: RetryAt(MILLISECOND, "HTTP_503", "busy"),
    "bury": lambda: Bury("HTTP_400", "no", ("unrecoverable",)),
    "release": Release,
    "postpone": lambda: Release(MILLISECOND, postponed=True),
}


@dataclass(frozen=True)
class Reschedule:
    """`PUT …/instances/{key}`, or a put inside a caller's own transaction that goes on for `linger` round trips."""

    key: int
    version: int | None = None
    again: bool = False
    ahead_ms: int = 0
    linger: int = 0


@dataclass(frozen=True)
class Cancel:
    """`DELETE …/instances/{key}`."""

    key: int


@dataclass(frozen=True)
class Take:
    """A claim by one of the nodes, which may have lost its lease or been fenced meanwhile."""

    node: int
    rows: int = 8
    linger: int = 0


@dataclass(frozen=True)
class Settle:
    """An outcome for one of the claims in hand; its transaction goes on for `linger` round trips."""

    which: int
    decision: str
    linger: int = 0


@dataclass(frozen=True)
class Haunt:
    """An outcome for any claim there ever was, through the engine's settler: most are zombies."""

    which: int
    decision: str


@dataclass(frozen=True)
class Lapse:
    """A node's lease runs out while it still works, it is fenced and rescued; a new incarnation takes its place."""

    node: int


@dataclass(frozen=True)
class Resign:
    """A node stops while it may still have a claim under way; the rescuer looks at once."""

    node: int


@dataclass(frozen=True)
class Rescue:
    """One more look of a rescuer."""


Operation = Reschedule | Cancel | Take | Settle | Haunt | Lapse | Resign | Rescue
Plan = Sequence[Sequence[Operation]]
"""Batches; the operations of a batch run at the same time."""


@dataclass
class Scene:
    """One job with what its actors know."""

    job: JobRow
    accountant: Accountant
    nodes: list[int]
    """The incarnation in each place. Two losses of one place at the same time leave one incarnation without a place."""
    incarnations: list[int]
    """Every incarnation there ever was: one without a place may hold claims as well."""
    held: list[ClaimedRow] = field(default_factory=list[ClaimedRow])
    ever: list[ClaimedRow] = field(default_factory=list[ClaimedRow])


class World:
    """Connections, rescuer and settler for all scenes of a test."""

    def __init__(self, url: str, runner: asyncio.Runner, seed: int) -> None:
        self._url = url
        self._runner = runner
        self._dice = random.Random(seed)
        self._stack = AsyncExitStack()
        self.operations = 0
        self.scenes = 0
        self.late_results = 0
        self.rescued = 0
        self.verdicts: dict[str, int] = {}

    def open(self) -> None:
        self._runner.run(self._open())

    async def _open(self) -> None:
        self._scope: Scope = await self._stack.enter_async_context(make.scope(self._url, size=LANES_WIDE))
        self._connections = [await self._connection(f"actor {n}") for n in range(LANES_WIDE)]
        self._watcher = await self._connection("watcher")
        lease = FixedLease(0)  # none of the incarnations, and the owner of every shard
        self._rescuers = [Rescuer(self._line(f"rescuer {n}"), lease, Wakeups(), SETTINGS) for n in range(LANES_WIDE)]
        self._health = EngineHealth()
        self._settlers = [
            Settler(
                self._line(f"settler {n}", LOCK_TIMEOUT),
                InFlight(1000, self._health),
                Wakeups(),
                self._health,
                SETTINGS,
            )
            for n in range(LANES_WIDE)
        ]

    async def _connection(self, name: str) -> Superuser:
        connection = await superuser(self._url, name)
        self._stack.push_async_callback(connection.close)
        return connection

    def _line(self, name: str, lock_timeout: timedelta = LOOP_LOCK_TIMEOUT) -> StageConnection:
        line = StageConnection(self._url, name, lock_timeout=lock_timeout)
        self._stack.push_async_callback(line.close)
        return line

    def close(self) -> None:
        self._runner.run(self._stack.aclose())

    def play(self, plan: Plan) -> list[str]:
        """Runs a plan on a job of its own; what went wrong."""
        return self._runner.run(self._play(plan))

    async def _play(self, plan: Plan) -> list[str]:
        scene = await self._set_up()
        for batch in plan:
            await asyncio.gather(*(self._turn(place, scene, op) for place, op in enumerate(batch)))
            await scene.accountant.look(self._watcher)
        await self._drain(scene)
        problems = await scene.accountant.audit(self._watcher)
        for finding in await verify(self._watcher):
            problems += [f"{finding.invariant}: {example}" for example in finding.examples]
        self.scenes += 1
        self.late_results = self._health.late_results
        for put in scene.accountant.puts:
            self.verdicts[put.verdict.value] = self.verdicts.get(put.verdict.value, 0) + 1
        return problems

    async def _set_up(self) -> Scene:
        """A queue of its own gives the job a lane of its own: what another scene left behind is not claimed here."""
        name = f"scene-{self._dice.getrandbits(60):x}"
        retry = {"maxRetry": 2, "base": "1ms", "jitter": "none"}
        job = await make.job(self._scope, name, queue=name, retry=retry)
        nodes = [await make.node(self._watcher) for _ in range(NODES)]
        return Scene(job, Accountant(job.id), nodes, list(nodes))

    async def _turn(self, place: int, scene: Scene, operation: Operation) -> None:
        self.operations += 1
        for _ in range(self._dice.randrange(4)):
            await asyncio.sleep(0)
        await self._perform(place, scene, operation)

    def _perform(self, place: int, scene: Scene, operation: Operation) -> Coroutine[Any, Any, None]:
        match operation:
            case Reschedule():
                return self._reschedule(place, scene, operation)
            case Cancel(key):
                return self._cancel(scene, f"key-{key}")
            case Take():
                return self._take(place, scene, scene.nodes[operation.node % NODES], operation)
            case Settle():
                return self._settle(place, scene, operation)
            case Haunt(which, decision):
                return self._haunt(place, scene, which, DECISIONS[decision]())
            case Lapse(node):
                return self._lapse(place, scene, node % NODES)
            case Resign(node):
                return self._resign(place, scene, node % NODES)
            case Rescue():
                return self._rescue(place)

    async def _reschedule(self, place: int, scene: Scene, wish: Reschedule) -> None:
        accountant = scene.accountant
        began = accountant.tick()
        at = datetime.now(UTC) + wish.ahead_ms * MILLISECOND
        at = at.replace(microsecond=at.microsecond // 1000 * 1000 + began % 1000)  # unlike any other of this scene
        put = Put(f"key-{wish.key}", at, None, PutOptions(wish.version, wish.again))
        verdict, instance_id = await (
            self._put_within(place, scene, put, wish.linger) if wish.linger else self._put(scene, put)
        )
        accountant.puts.append(
            Acknowledged(put.key, at, wish.version, wish.again, verdict, instance_id, began, accountant.tick())
        )

    async def _put(self, scene: Scene, put: Put) -> tuple[PutDecision, int]:
        asked = instances.AskedPut(put.key, put.at, put.payload, put.intent)
        verdict, row = await instances.put_instance(self._scope, scene.job.name, asked)
        return verdict, row.id

    async def _put_within(self, place: int, scene: Scene, put: Put, linger: int) -> tuple[PutDecision, int]:
        async def attempt() -> tuple[PutDecision, int]:
            connection = self._connections[place]
            async with connection.transaction():
                job_place = await instances.find_place(connection, self._scope, scene.job.name)
                (answer,) = await put_all(connection, job_place, [put])
                await _linger(connection, linger)
            return answer.verdict, answer.instance_id

        return await retrying(attempt)

    async def _cancel(self, scene: Scene, key: str) -> None:
        try:
            row = await instances.cancel_by_key(self._scope, scene.job.name, key)
        except NotFound:
            return
        scene.accountant.cancelled.add(row.id)

    async def _take(self, place: int, scene: Scene, node: int, take: Take) -> None:
        began = scene.accountant.tick()
        positions = [Position(shard, scene.job.lane_id, make.LONG_AGO, -1) for shard in range(SHARDS)]
        connection = self._connections[place]
        async with connection.transaction():
            by = ClaimedBy(node, began, datetime.now(UTC))
            claimed = await claims.claim_due(connection, by, positions, [take.rows] * SHARDS)
            await _linger(connection, take.linger)
        scene.accountant.claims += [ClaimSeen(row, began) for row in claimed]
        scene.held += claimed
        scene.ever += claimed

    async def _settle(self, place: int, scene: Scene, settle: Settle) -> None:
        if scene.held:
            held = scene.held.pop(settle.which % len(scene.held)).held
            await self._report(self._connections[place], scene, held, DECISIONS[settle.decision](), settle.linger)

    async def _report(
        self, connection: Superuser, scene: Scene, held: Claim, decision: Decision, linger: int = 0
    ) -> None:
        scene.accountant.reported.append((held, decision))
        async with connection.transaction():
            applied = await settlements.apply(connection, [(held, decision)])
            await _linger(connection, linger)
        if held.id in applied.ids:
            scene.accountant.settled.append((held, decision))

    async def _haunt(self, place: int, scene: Scene, which: int, decision: Decision) -> None:
        if not scene.ever:
            return
        settler, held = self._settlers[place], scene.ever[which % len(scene.ever)].held
        scene.accountant.reported.append((held, decision))
        settler.submit(Settlement(held, decision))
        await self._until_settled(settler)

    async def _until_settled(self, settler: Settler) -> None:
        async with asyncio.timeout(30):
            while settler._inbox.waiting:
                await settler.step(datetime.now(UTC))
                await asyncio.sleep(0)

    async def _lapse(self, place: int, scene: Scene, node: int) -> None:
        lost = scene.nodes[node]
        await self._replace(place, scene, node)
        await self._expire(place, [lost])
        await self._rescue(place)

    async def _replace(self, place: int, scene: Scene, node: int) -> None:
        scene.nodes[node] = await make.node(self._connections[place])
        scene.incarnations.append(scene.nodes[node])

    async def _expire(self, place: int, incarnations: Sequence[int]) -> None:
        await self._connections[place].execute(
            "update horai.node set lease_until = clock_timestamp() - interval '1 s' where incarnation = any ($1)",
            incarnations,
        )

    async def _resign(self, place: int, scene: Scene, node: int) -> None:
        gone = scene.nodes[node]
        await nodes.stop_node(self._connections[place], gone)
        await self._replace(place, scene, node)
        await self._rescue(place)

    async def _rescue(self, place: int) -> None:
        await self._rescuers[place].step(datetime.now(UTC))

    async def _drain(self, scene: Scene) -> None:
        """Check B18: with all nodes gone but one, everything ends."""
        await self._expire(0, scene.incarnations)
        await self._rescue(0)
        survivor = await make.node(self._watcher)
        async with asyncio.timeout(30):
            while await self._watcher.fetchval(
                "select exists (select from horai.instance_live where job_id = $1)", scene.job.id
            ):
                await self._rescue(0)
                first = len(scene.ever)
                await self._take(0, scene, survivor, Take(0, 1000))
                for row in scene.ever[first:]:
                    await self._report(self._watcher, scene, row.held, Complete())


async def _linger(connection: Superuser, round_trips: int) -> None:
    """Keeps a transaction open while the others go on."""
    for _ in range(round_trips):
        await connection.fetchval("select 1")
