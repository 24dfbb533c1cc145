"""An explicit-state model of durable steps: records, suspension, signals and child calls of one instance on two nodes.

The function runs the step A, waits for a signal, calls a child, and runs the step B. A node claims the instance, loads its
records, and skips what they hold. It may be fenced at any moment while it goes on, or be killed; the answer to the commit of
a record may be lost with it. A signal is sent at most once, at any moment. The child ends at any moment, without a lock of its
caller, and its wake may be lost. The caller may be cancelled while it is suspended.

`StepRules` says which of our guards are in force. With all of them no violation is reachable; take one away and `explore`
returns the shortest way to the harm.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MOST_LOSSES = 2
MOST_CLAIMS = 5
SCRIPT = ("A", "signal", "child", "B")
MOST_CHILDREN = 2

Stage = Literal["INIT", "SUSPENDED", "RUNNING", "FAIL", "SUCCESS", "CANCELLED"]
"""SUSPENDED is INIT with a due time that does not come by itself."""


@dataclass(frozen=True)
class StepRules:
    """The guards of the implementation; the defaults are ours."""

    record_has_fence: bool = True
    """A record compares fence and incarnation, not only the state."""
    record_locks_row: bool = True
    """The statement that compares holds the instance's row until the record is committed."""
    suspension_has_fence: bool = True
    """A suspension compares fence and incarnation, not only the state."""
    loads_records: bool = True
    """A claim that is not the first loads the records."""
    suspension_looks_again: bool = True
    """A suspension looks for signals while it holds the row."""
    signal_locks_row: bool = True
    """A signal is stored and wakes the instance while it holds the row."""
    call_is_recorded_with_child: bool = True
    """One transaction creates the child and records the call."""
    sweep_wakes_callers: bool = True
    """A sweep finds suspended callers of ended children that no wake has reached."""
    wake_needs_suspension: bool = True
    """The end of a child counts as told only once its caller was suspended and is due."""
    sweep_ends_orphans: bool = True
    """A sweep cancels children whose callers have ended."""


class Runner(NamedTuple):
    """One process: what it does, for which claim, and which records it knows."""

    incarnation: int
    doing: Literal["idle", "loading", "working", "recording", "compared", "calling", "suspending", "done"] = "idle"
    fence: int = 0
    known: frozenset[str] = frozenset()

    @property
    def next(self) -> str | None:
        """The first part of the function that this process does not know to be finished."""
        return next((part for part in SCRIPT if part not in self.known), None)


class StepWorld(NamedTuple):
    """A state of the model."""

    stage: Stage = "INIT"
    fence: int = 0
    owner: int | None = None
    records: frozenset[str] = frozenset()
    signal: Literal["none", "looked", "sent", "consumed"] = "none"
    """`looked`: its sender has seen no suspended instance, and will store it (only without the lock)."""
    child: Literal["none", "unrecorded", "live", "ended", "cancelled"] = "none"
    """`unrecorded`: it exists, and the call is not recorded (only without one transaction for both)."""
    children: int = 0
    is_told: bool = False
    """The end of the child has made its caller due."""
    runners: tuple[Runner, ...] = (Runner(1), Runner(2))
    fenced: frozenset[int] = frozenset()
    losses: int = 0
    harm: frozenset[str] = frozenset()


Move = tuple[str, StepWorld]


@dataclass
class Explored:
    """The number of states, and the shortest way to each violation."""

    states: int = 0
    violations: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def explore(rules: StepRules) -> Explored:
    """Visit every reachable state, breadth first."""
    start = StepWorld()
    came_from: dict[StepWorld, tuple[str, StepWorld] | None] = {start: None}
    queue, found = deque([start]), Explored()
    while queue:
        world = queue.popleft()
        progress = list(progress_of(world, rules))
        for violation in violations_of(world, is_quiet=not progress):
            found.violations.setdefault(violation, _way_to(world, came_from))
        for name, following in (*progress, *disturbances_of(world, rules)):
            if following not in came_from:
                came_from[following] = (name, world)
                queue.append(following)
    found.states = len(came_from)
    return found


def _way_to(world: StepWorld, came_from: dict[StepWorld, tuple[str, StepWorld] | None]) -> list[str]:
    way: list[str] = []
    while (step := came_from[world]) is not None:
        way.append(step[0])
        world = step[1]
    return way[::-1]


def violations_of(world: StepWorld, *, is_quiet: bool) -> Iterator[str]:
    """Yield the violations in this state; a stuck instance counts only when no process can make progress any more."""
    yield from world.harm
    if world.children > 1:
        yield "a call has two children"
    if is_quiet and world.stage == "CANCELLED":
        if world.child == "live":
            yield "a child outlived its caller"
    elif is_quiet and world.stage != "SUCCESS" and world.fence < MOST_CLAIMS:
        if world.stage != "SUSPENDED":
            yield f"stuck in {world.stage}"
        elif world.child == "ended":
            yield "the end of a child did not wake its caller"
        elif world.signal == "sent":
            yield "a signal did not wake the instance"


def progress_of(world: StepWorld, rules: StepRules) -> Iterator[Move]:
    """Yield the moves of processes, of the rescue, and the second half of a signal."""
    for index, runner in enumerate(world.runners):
        yield from _work(world, index, runner, rules)
        if runner.doing == "idle" and runner.incarnation in world.fenced:
            yield f"{index} takes a new incarnation", _with(world, index, Runner(runner.incarnation + 2))
    if world.stage == "RUNNING" and world.owner in world.fenced:
        yield "the instance is rescued", world._replace(stage="FAIL", owner=None)
    if world.signal == "looked":
        yield "the signal is stored", world._replace(signal="sent")
    if world.child == "ended" and not world.is_told and rules.sweep_wakes_callers:
        if world.stage == "SUSPENDED":
            yield "a sweep wakes the caller", world._replace(stage="INIT", is_told=True)
        elif not rules.wake_needs_suspension:
            yield "a sweep finds no suspended caller", world._replace(is_told=True)
    if world.child == "live" and world.stage == "CANCELLED" and rules.sweep_ends_orphans:
        yield "a sweep cancels the child", world._replace(child="cancelled")


def disturbances_of(world: StepWorld, rules: StepRules) -> Iterator[Move]:
    """Yield the moves of failures, of the child, and of the senders of the signal and of a cancel."""
    if world.child == "live":
        ended = world._replace(child="ended")
        yield "the child ends, and its wake is lost", ended
        if world.stage == "SUSPENDED":
            yield "the child ends, and wakes its caller", ended._replace(stage="INIT", is_told=True)
    if world.stage == "SUSPENDED":
        yield "the instance is cancelled", world._replace(stage="CANCELLED")
    if world.signal == "none" and world.stage not in ("SUCCESS", "CANCELLED"):
        woken: Stage = "INIT" if world.stage == "SUSPENDED" else world.stage
        if rules.signal_locks_row or woken != world.stage:
            yield "a signal is sent", world._replace(signal="sent", stage=woken)
        else:
            yield "a signal sees no suspended instance", world._replace(signal="looked")
    if world.losses < MOST_LOSSES:
        for index, runner in enumerate(world.runners):
            lost = world._replace(fenced=world.fenced | {runner.incarnation}, losses=world.losses + 1)
            if runner.incarnation not in world.fenced:
                yield f"{index} is fenced", lost
            yield f"{index} is killed", _with(lost, index, Runner(runner.incarnation + 2))


def _with(world: StepWorld, index: int, runner: Runner) -> StepWorld:
    return world._replace(runners=(*world.runners[:index], runner, *world.runners[index + 1 :]))


def _is_own(world: StepWorld, runner: Runner) -> bool:
    return world.stage == "RUNNING" and world.fence == runner.fence and world.owner == runner.incarnation


def _work(world: StepWorld, index: int, runner: Runner, rules: StepRules) -> Iterator[Move]:
    is_own = _is_own(world, runner)
    idle = _with(world, index, Runner(runner.incarnation))
    match runner.doing:
        case "idle":
            if world.stage in ("INIT", "FAIL") and runner.incarnation not in world.fenced and world.fence < MOST_CLAIMS:
                claimed = world._replace(stage="RUNNING", fence=world.fence + 1, owner=runner.incarnation)
                doing = "loading" if rules.loads_records else "working"
                yield f"{index} claims", _with(claimed, index, Runner(runner.incarnation, doing, claimed.fence))
        case "loading":
            yield f"{index} loads", _with(world, index, runner._replace(doing="working", known=world.records))
        case "working":
            yield from _next_part(world, index, runner, rules, is_own=is_own)
        case "recording":
            may = is_own if rules.record_has_fence else world.stage == "RUNNING"
            if not may:
                yield f"{index} is refused", idle
            elif rules.record_locks_row:  # no move changes the row between the two
                yield _record(world, index, runner, is_own=is_own)
            else:
                yield f"{index} compares", _with(world, index, runner._replace(doing="compared"))
        case "compared":
            yield _record(world, index, runner, is_own=is_own)
        case "calling" | "suspending":
            yield _end_of_wait(world, index, runner, rules, is_own=is_own)
        case "done":
            yield (
                (f"{index} settles", idle._replace(stage="SUCCESS", owner=None))
                if is_own
                else (f"{index} is late", idle)
            )


def _end_of_wait(world: StepWorld, index: int, runner: Runner, rules: StepRules, *, is_own: bool) -> Move:
    """Return the record of a call without its child's transaction, or the suspension."""
    idle = _with(world, index, Runner(runner.incarnation))
    if runner.doing == "calling":
        if rules.record_has_fence and not is_own:
            return f"{index} may not call", idle
        suspends = _with(world, index, runner._replace(doing="suspending"))
        return f"{index} records the call", suspends._replace(child="live")
    may = is_own if rules.suspension_has_fence else world.stage == "RUNNING"
    stays = rules.suspension_looks_again and world.signal == "sent" and "signal" not in world.records
    harm = world.harm if is_own else world.harm | {"a zombie suspended another claim"}
    asleep = idle._replace(stage="INIT" if stays else "SUSPENDED", owner=None, harm=harm)
    return (f"{index} suspends", asleep) if may else (f"{index} may not suspend", idle)


def _next_part(world: StepWorld, index: int, runner: Runner, rules: StepRules, *, is_own: bool) -> Iterator[Move]:
    """Yield the next part of the function: a step runs, a wait takes its signal or suspends, a call has its child or suspends."""
    part = runner.next
    if part is None:
        yield f"{index} returns", _with(world, index, runner._replace(doing="done"))
    elif part == "signal" and world.signal != "sent":
        yield f"{index} finds no signal", _with(world, index, runner._replace(doing="suspending"))
    elif part == "child" and world.child in ("none", "unrecorded", "live"):
        yield from _call(world, index, runner, rules, is_own=is_own)
    else:
        harm = world.harm
        if part not in ("signal", "child") and is_own and part in world.records:
            harm |= {"a finished step ran again"}
        running = _with(world, index, runner._replace(doing="recording"))
        yield f"{index} runs {part}", running._replace(harm=harm)


def _call(world: StepWorld, index: int, runner: Runner, rules: StepRules, *, is_own: bool) -> Iterator[Move]:
    """Yield the creation of a child, or the suspension until it has ended. A recorded call creates no other."""
    suspends = _with(world, index, runner._replace(doing="suspending"))
    if world.child == "live":
        yield f"{index} waits for the child", suspends
    elif rules.record_has_fence and not is_own:
        yield f"{index} may not call", _with(world, index, Runner(runner.incarnation))
    elif rules.call_is_recorded_with_child:
        harm = world.harm if is_own else world.harm | {"a zombie's record was written"}
        yield f"{index} calls the child", suspends._replace(child="live", children=world.children + 1, harm=harm)
    else:
        created = _with(world, index, runner._replace(doing="calling"))
        children = min(world.children + 1, MOST_CHILDREN)
        yield f"{index} creates a child", created._replace(child="unrecorded", children=children)


def _record(world: StepWorld, index: int, runner: Runner, *, is_own: bool) -> Move:
    part = runner.next or ""
    harm = world.harm if is_own else world.harm | {"a zombie's record was written"}
    knows = runner._replace(doing="working", known=runner.known | {part})
    recorded = _with(world, index, knows)._replace(records=world.records | {part}, harm=harm)
    if part == "signal":
        recorded = recorded._replace(signal="consumed")
    return f"{index} records {part}", recorded
