"""An explicit-state model of one key: insert, claim, call, settle, lease expiry, zombie, resignation, reschedule, cancel.

Every reachable state of a small world is visited: two nodes, at most three instances of the key, two claims each, one
reschedule, one cancellation, two lost incarnations (a lease that ran out, or a kill). A lease may expire at any moment
after a claim, though the node still works (a pause, SIGSTOP, a cut network): safety must not rest on timing. A claim is
two moves, because its transaction is one: it looks whether its node may claim, and later commits; between them the node
may be fenced and rescued.

The first instance is inserted by a client, or by a node that claims it at birth: the node looks, and the transaction that
inserts the row commits it as RUNNING. The answer to that commit may be lost; the node then gives the row back.

`Rules` says which of our guards are in force. With all of them no violation is reachable; take one away and `explore`
returns the shortest way to the harm. The names of violations are those of ARCHITECTURE.md.

The two nodes are alike, so a state whose mirror image was visited leads to mirror images only. It is not visited again,
except in the long form (HORAI_LONG=1).
"""

import gc
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Literal, NamedTuple

from sizes import IS_LONG

MOST_CLAIMS = 2
MOST_LOSSES = 2
FIRST_TIME, NEW_TIME = 1, 2


class Stage(StrEnum):
    """The states of an instance that matter here."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    FAIL = "FAIL"
    SUCCESS = "SUCCESS"
    DEAD = "DEAD"
    CANCELLED = "CANCELLED"


FINAL = {Stage.SUCCESS, Stage.DEAD, Stage.CANCELLED}
PLANNED = {Stage.INIT, Stage.FAIL}

RescheduleRule = Literal["locked", "re-decide", "swallow", "blind"]


@dataclass(frozen=True)
class Rules:
    """The guards of the implementation; the defaults are ours."""

    has_fence: bool = True
    """A settlement compares attempt, fence and incarnation, not only the state (seed 001 does not)."""
    has_rescue: bool = True
    """A rescuer gives back what a lost node held (seed 003 reloads no running rows)."""
    claim_locks_node: bool = True
    """A claim holds its node's row FOR KEY SHARE, which fencing and resigning wait for."""
    claim_asks_fenced: bool = True
    """A claim, at birth or later, looks whether its node was fenced."""
    gives_back_lost: bool = True
    """A node gives back rows that run for it without its knowledge: the answer to its claim at birth was lost."""
    reschedule: RescheduleRule = "locked"
    """`swallow`: an UPDATE of 0 rows counts as done; `blind`: RUNNING is cancelled without looking again."""
    unit_key: bool = True
    """A receiver recognises the business unit across reschedules; else only (job, fire time), as in seed 002."""


class Row(NamedTuple):
    """One instance of the key."""

    stage: Stage = Stage.INIT
    attempt: int = 0
    time: int = FIRST_TIME
    owner: int | None = None
    """The incarnation."""


class Node(NamedTuple):
    """One process: what it is doing, and for which claim."""

    incarnation: int
    doing: Literal["idle", "bearing", "claiming", "holding", "succeeded", "failed"] = "idle"
    row: int = -1
    attempt: int = 0
    claim_incarnation: int = 0


class World(NamedTuple):
    """A state of the model."""

    rows: tuple[Row, ...] = ()
    nodes: tuple[Node, ...] = (Node(1), Node(2))
    fenced: frozenset[int] = frozenset()
    rescued: frozenset[int] = frozenset()
    reschedule: Literal["idle", "acknowledged", "refused"] | Stage = "idle"
    """A stage: the one that was read, before the write (only without the lock)."""
    is_cancelled: bool = False
    losses: int = 0
    effects: frozenset[int] = frozenset()
    """Keys under which a receiver has seen a call."""
    harm: frozenset[str] = frozenset()


Move = tuple[str, World]


@dataclass
class Explored:
    """All there is to reach, and the shortest way to each violation."""

    states: int = 0
    violations: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


@contextmanager
def _without_collection() -> Generator[None]:
    """Keep Python from looking for cycles in states that have none: it is a third of the work."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@cache
def explore(rules: Rules) -> Explored:
    """Visits every reachable state, breadth first."""
    with _without_collection():
        return _explore(rules)


def _explore(rules: Rules) -> Explored:
    start = World()
    came_from: dict[World, tuple[str, World] | None] = {start: None}
    queue, found = deque([start]), Explored()
    while queue:
        world = queue.popleft()
        progress = list(progress_of(world, rules))
        moves = [*progress, *disturbances_of(world, rules)]
        for violation in violations_of(world, rules, is_quiet=not progress):
            found.violations.setdefault(violation, way_to(world, came_from))
        for name, following in moves:
            if following not in came_from and (IS_LONG or mirrored(following) not in came_from):
                came_from[following] = (name, world)
                queue.append(following)
    found.states = len(came_from)
    return found


def mirrored(world: World) -> World:
    """The same with the two nodes in each other's place. One has the odd incarnations, the other the even ones."""
    return World(
        tuple(row._replace(owner=_other(row.owner)) if row.owner else row for row in world.rows),
        tuple(_mirrored(node) for node in world.nodes[::-1]),
        frozenset(map(_other, world.fenced)),
        frozenset(map(_other, world.rescued)),
        *world[4:],
    )


def _mirrored(node: Node) -> Node:
    incarnation, doing, row, attempt, claim_incarnation = node
    return Node(_other(incarnation), doing, row, attempt, claim_incarnation and _other(claim_incarnation))


def _other(incarnation: int) -> int:
    """The incarnation of the other node: 1 and 2, 3 and 4, …"""
    return incarnation + 1 if incarnation % 2 else incarnation - 1


def way_to(world: World, came_from: dict[World, tuple[str, World] | None]) -> list[str]:
    """The names of the moves that lead here."""
    way: list[str] = []
    while (step := came_from[world]) is not None:
        way.append(step[0])
        world = step[1]
    return way[::-1]


def violations_of(world: World, rules: Rules, *, is_quiet: bool) -> Iterator[str]:
    """Yield the violations in this state; some count only when no node can make progress any more."""
    yield from world.harm
    if sum(row.stage not in FINAL for row in world.rows) > 1:
        yield "I4 two live instances"
    if len(world.effects) > 1 and not rules.unit_key:
        yield "I6 the receiver cannot tell that both calls are for one unit"
    if is_quiet:
        for row in world.rows:
            if row.stage not in FINAL:
                yield f"I5 stuck in {row.stage.value}"
        if world.reschedule == "acknowledged" and not any(row.time == NEW_TIME for row in world.rows):
            yield "I3 an acknowledged reschedule was swallowed"


def moves_of(world: World, rules: Rules) -> Iterator[Move]:
    """Yield every move that is possible next."""
    yield from progress_of(world, rules)
    yield from disturbances_of(world, rules)


def progress_of(world: World, rules: Rules) -> Iterator[Move]:
    """Yield the moves that nodes make by themselves, and the second half of a put. Without any, the world is quiet."""
    for index, node in enumerate(world.nodes):
        yield from _work(world, index, node, rules)
        if node.incarnation in world.fenced and node.doing == "idle":
            yield f"node {index} takes a new incarnation", _of_nodes(world, _reborn(world, index, node))
    if rules.has_rescue:
        yield from _rescue(world)
    if isinstance(world.reschedule, Stage):
        last = len(world.rows) - 1
        yield _write_as_read(world, last, world.rows[last], world.reschedule, rules.reschedule)


def disturbances_of(world: World, rules: Rules) -> Iterator[Move]:
    """Yield the moves of users and of failures: work goes on whether they happen or not."""
    for index, node in enumerate(world.nodes):
        yield from _lose(world, index, node, rules)
    if not world.rows:
        yield "a client inserts", world._replace(rows=(Row(),))
        return
    yield from _reschedule(world, rules)
    yield from _cancel(world)


def _with_row(world: World, index: int, row: Row) -> tuple[Row, ...]:
    return (*world.rows[:index], row, *world.rows[index + 1 :])


def _with_node(world: World, index: int, node: Node) -> tuple[Node, ...]:
    return (*world.nodes[:index], node, *world.nodes[index + 1 :])


def _of_nodes(world: World, nodes: tuple[Node, ...]) -> World:
    """The world with other nodes; `_replace` takes several times as long, and this is most of all moves."""
    return World(world.rows, nodes, *world[2:])


def _idle(node: Node) -> Node:
    return Node(node.incarnation)


def _work(world: World, index: int, node: Node, rules: Rules) -> Iterator[Move]:
    """Look, commit the claim, call, report. A node goes on with what it began even when it has been fenced."""
    match node.doing:
        case "idle":
            may_claim = not rules.claim_asks_fenced or node.incarnation not in world.fenced
            looking = node._replace(doing="claiming", claim_incarnation=node.incarnation)
            if may_claim and not world.rows:
                bearing = _with_node(world, index, looking._replace(doing="bearing"))
                yield f"node {index} may claim at birth", _of_nodes(world, bearing)
            if may_claim and any(_is_claimable(row) for row in world.rows):
                yield f"node {index} may claim", _of_nodes(world, _with_node(world, index, looking))
            if rules.gives_back_lost:
                yield from _give_back(world, index, node)
        case "bearing":
            yield from _bear(world, index, node)
        case "claiming":
            if not any(_is_claimable(row) for row in world.rows):
                yield f"node {index} claims nothing", _of_nodes(world, _with_node(world, index, _idle(node)))
            for at, row in enumerate(world.rows):
                if _is_claimable(row):
                    taken = Row(Stage.RUNNING, row.attempt + 1, row.time, node.claim_incarnation)
                    holding = node._replace(doing="holding", row=at, attempt=taken.attempt)
                    nodes = _with_node(world, index, holding)
                    yield f"node {index} claims {at}", World(_with_row(world, at, taken), nodes, *world[2:])
        case "holding":
            key = 0 if rules.unit_key else world.rows[node.row].time
            for came in ("succeeded", "failed"):  # a failed call may have had its effect all the same
                nodes = _with_node(world, index, node._replace(doing=came))
                yield f"node {index} calls: {came}", world._replace(nodes=nodes, effects=world.effects | {key})
        case "succeeded" | "failed":
            yield _settle(world, index, node, rules)


def _bear(world: World, index: int, node: Node) -> Iterator[Move]:
    """Yield the commit of an insert that claims its row, with the answer and without it. Another insert may win the key."""
    if world.rows:
        yield f"node {index} bears nothing", _of_nodes(world, _with_node(world, index, _idle(node)))
        return
    born = world._replace(rows=(Row(Stage.RUNNING, 1, FIRST_TIME, node.claim_incarnation),))
    holding = node._replace(doing="holding", row=0, attempt=1)
    yield f"node {index} claims at birth", _of_nodes(born, _with_node(world, index, holding))
    yield f"node {index} claims at birth, unanswered", _of_nodes(born, _with_node(world, index, _idle(node)))


def _give_back(world: World, index: int, node: Node) -> Iterator[Move]:
    """Yield the release of a row that runs for an idle node. A row that was claimed twice ends as any other does."""
    for at, row in enumerate(world.rows):
        if row.stage is Stage.RUNNING and row.owner == node.incarnation:
            back = row._replace(stage=Stage.INIT if row.attempt < MOST_CLAIMS else Stage.DEAD, owner=None)
            yield f"node {index} gives {at} back", world._replace(rows=_with_row(world, at, back))


def _is_claimable(row: Row) -> bool:
    return row.stage in PLANNED and row.attempt < MOST_CLAIMS


def _settle(world: World, index: int, node: Node, rules: Rules) -> Move:
    row = world.rows[node.row]
    is_own = row.attempt == node.attempt and row.owner == node.claim_incarnation
    nodes = _with_node(world, index, _idle(node))
    if row.stage is not Stage.RUNNING or (rules.has_fence and not is_own):
        return f"node {index} is refused", _of_nodes(world, nodes)
    stage = Stage.SUCCESS if node.doing == "succeeded" else _failed(row)
    harm = world.harm if is_own else world.harm | {"I2 a stale outcome was accepted"}
    settled = row._replace(stage=stage, owner=None)
    return f"node {index} settles: {stage.value}", world._replace(
        rows=_with_row(world, node.row, settled), nodes=nodes, harm=harm
    )


def _failed(row: Row) -> Stage:
    return Stage.FAIL if row.attempt < MOST_CLAIMS else Stage.DEAD


def _lose(world: World, index: int, node: Node, rules: Rules) -> Iterator[Move]:
    """The lease expires while the node goes on, or the process is killed; either way its incarnation is fenced."""
    is_fenced = node.incarnation in world.fenced
    if world.losses == MOST_LOSSES:
        return
    fenced = world.fenced | {node.incarnation} if rules.has_rescue else world.fenced
    lost = world._replace(fenced=fenced, losses=world.losses + 1)
    if rules.has_rescue and not is_fenced and not (node.doing in ("claiming", "bearing") and rules.claim_locks_node):
        yield f"node {index} is fenced", lost
    # What it had not committed never was.
    yield f"node {index} is killed", _of_nodes(lost, _reborn(world, index, node))


def _reborn(world: World, index: int, node: Node) -> tuple[Node, ...]:
    return _with_node(world, index, Node(node.incarnation + 2))


def _rescue(world: World) -> Iterator[Move]:
    """Yield one rescue pass over the rows of a fenced incarnation, after which no pass looks at it again."""
    for incarnation in sorted(world.fenced - world.rescued):
        rows = tuple(
            row._replace(stage=_failed(row), owner=None)
            if row.stage is Stage.RUNNING and row.owner == incarnation
            else row
            for row in world.rows
        )
        yield f"incarnation {incarnation} is rescued", world._replace(rows=rows, rescued=world.rescued | {incarnation})


def _reschedule(world: World, rules: Rules) -> Iterator[Move]:
    """Yield the first step of a reschedule by seed 000.

    A planned instance is moved, a running one is replaced, one that succeeded is left, all else is made again.
    """
    last = len(world.rows) - 1
    row = world.rows[last]
    if world.reschedule == "idle":
        if rules.reschedule == "locked":
            yield _put(world, last, row)
        else:
            yield f"a put reads {row.stage.value}", world._replace(reschedule=row.stage)


def _write_as_read(world: World, last: int, row: Row, read: Stage, rule: RescheduleRule) -> Move:
    """The write of a put that read without a lock, when the row may have changed meanwhile."""
    if read is row.stage or (read in PLANNED and row.stage in PLANNED):
        return _put(world, last, row)
    if rule == "swallow" and read in PLANNED:
        return "a put updates no row and is acknowledged", world._replace(reschedule="acknowledged")
    if rule == "blind" and read is Stage.RUNNING:
        harm = world.harm | {"I1 what was final has changed"} if row.stage in FINAL else world.harm
        gone = row._replace(stage=Stage.CANCELLED, owner=None)
        rows = (*_with_row(world, last, gone), Row(time=NEW_TIME))
        return "a put cancels blindly", world._replace(rows=rows, reschedule="acknowledged", harm=harm)
    return "a put decides again", world._replace(reschedule="idle")


def _put(world: World, last: int, row: Row) -> Move:
    name = f"a put meets {row.stage.value}"
    if row.stage is Stage.SUCCESS:
        return name, world._replace(reschedule="refused")
    if row.stage in PLANNED:
        rows = _with_row(world, last, row._replace(time=NEW_TIME))
    elif row.stage is Stage.RUNNING:
        rows = (*_with_row(world, last, row._replace(stage=Stage.CANCELLED, owner=None)), Row(time=NEW_TIME))
    else:
        rows = (*world.rows, Row(time=NEW_TIME))
    return name, world._replace(rows=rows, reschedule="acknowledged")


def _cancel(world: World) -> Iterator[Move]:
    """Yield a cancellation of the live instance by a user, in any stage, once."""
    last = len(world.rows) - 1
    row = world.rows[last]
    if not world.is_cancelled and row.stage not in FINAL:
        gone = row._replace(stage=Stage.CANCELLED, owner=None)
        yield "a user cancels", world._replace(rows=_with_row(world, last, gone), is_cancelled=True)
