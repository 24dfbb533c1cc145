"""Run: one run of a workflow, as `workflow.run(…)` and `workflow.runs()` return it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from horai.core.errors import HoraiError, Invalid
from horai.core.states import FINAL, State
from horai.sdk.deferred import runtime
from horai.sdk.handle import Handle
from horai.sdk.intervals import Interval
from horai.sdk.job_api import Home, Verbs
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import Shape, shape_of

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two reads of a run that a caller waits for."""
ITEMS_PAGE = 500
"""Items of a map that are read at once."""
UNDER_WAY = frozenset({"PENDING", "RUNNING"})
"""The states of a run that goes on by itself. A BLOCKED run waits for a replay or a rerun."""
_ENDED = frozenset({state.name for state in FINAL} | {"SKIPPED"})
"""The states of a node that has ended."""
_NOT_STARTED = {State.DEAD: "DEAD", State.CANCELLED: "CANCELLED"}


class RunFailed(HoraiError):
    """The run stopped before the node ran; `state` is the state of the run."""

    code = "SCH_424_RUN_FAILED"
    status = 424
    title = "Run failed"

    def __init__(self, run: "RunInfo", node: str, causes: str) -> None:
        super().__init__(
            f"The run {run.id} of {run.workflow!r} is {run.state}, and its node {node!r} did not run{causes}.",
            f"horai workflows run {run.workflow} {run.id} shows every node.",
        )
        self.state = run.state


class MapFailed(HoraiError):
    """The map is dead: there is no list, or more items failed than may; `error_code` says which."""

    code = "SCH_424_MAP_FAILED"
    status = 424
    title = "Map failed"

    def __init__(self, run: "RunInfo", node: "RunNodeInfo") -> None:
        super().__init__(
            f"The map {node.name!r} of the run {run.id} of {run.workflow!r} is {node.state}: {node.error_code}: {node.error}",
            f"run.items({node.name!r}, failed=True) lists the items that failed.",
        )
        self.error_code = node.error_code


@dataclass(frozen=True, slots=True)
class MapInfo:
    """The progress of a map. `total` is None until the node starts; `failed` of the `done` items did not succeed."""

    total: int | None
    done: int
    failed: int


@dataclass(frozen=True, slots=True)
class ChildRunInfo:
    """The run of another workflow that a node waits for. `run_id` is None until it is started; `attempt` counts its runs."""

    workflow: str
    run_id: str | None
    attempt: int


@dataclass(frozen=True, slots=True)
class SensorInfo:
    """A sensor in a run: how often it has asked, when it gives up (None until it starts), and when it asks next."""

    polls: int
    deadline_at: datetime | None
    next_poll_at: datetime | None


@dataclass(frozen=True, slots=True)
class MapItem:
    """An item of a map. `position` counts from 0; `result` is None unless the item succeeded."""

    position: int
    instance_id: str
    state: str
    error_code: str | None
    error: str | None
    result: Any


@dataclass(frozen=True, slots=True)
class RunNodeInfo:
    """A node of a run. `reason` says why it was cancelled; `instance_id` is the instance that runs it now.

    `state` is SKIPPED if the node was skipped, and `skip_reason` says why. `chosen` are the nodes that it chose to run.
    A node with a `map` has an instance for each item, and no `instance_id`.
    """

    name: str
    job: str
    state: str
    reason: str | None
    instance_id: str | None
    after: tuple[str, ...]
    attempt: int | None
    error_code: str | None
    error: str | None
    finished_at: datetime | None
    trigger_rule: str = "all_success"
    skip_reason: str | None = None
    chosen: tuple[str, ...] | None = None
    map: MapInfo | None = None
    child_run: ChildRunInfo | None = None
    """Set if it starts a run of another workflow."""
    sensor: SensorInfo | None = None
    """Set if it asks for a condition again and again."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as it was read. `state`: PENDING, RUNNING, BLOCKED, SUCCESS, CANCELLED, or DEAD if it could not be started.

    `nodes` is empty in lists, and until the run has started.
    """

    id: str
    workflow: str
    state: str
    fire_time: datetime
    payload: Any
    created_at: datetime
    finished_at: datetime | None
    interval: Interval | None = None
    """The data interval; None until the run has started, and if the workflow has no schedule."""
    nodes: Mapping[str, RunNodeInfo] = field(default_factory=dict[str, RunNodeInfo])


def pending_info(workflow: str, row: "runtime.InstanceRow") -> RunInfo:
    """Return a run that its instance has not started yet, or will never start."""
    state = _NOT_STARTED.get(row.state, "PENDING")
    payload = _json(row.payload)
    return RunInfo(str(row.id), workflow, state, row.fire_time, payload, row.created_at, row.finished_at)


def started_info(workflow: str, row: "runtime.RunRow", nodes: Mapping[str, RunNodeInfo] | None = None) -> RunInfo:
    """Return a run that has started."""
    return RunInfo(
        str(row.id),
        workflow,
        row.state.name,
        row.fire_time,
        _json(row.payload),
        row.created_at,
        row.finished_at,
        None if row.interval_start is None else Interval(row.interval_start, row.fire_time),
        dict(nodes or {}),
    )


def view_info(view: "runtime.RunView") -> RunInfo:
    """Return a run with its nodes."""
    name = view.workflow.row.name
    if view.row is not None:
        return started_info(name, view.row, {node.name: _node_info(view, node) for node in view.nodes})
    assert view.instance is not None  # noqa: S101 — a view has a row or an instance
    return pending_info(name, view.instance)


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _node_info(view: "runtime.RunView", node: "runtime.NodeNow") -> RunNodeInfo:
    return RunNodeInfo(
        node.name,
        node.job,
        node.state_name,
        None if node.reason is None else node.reason.name,
        None if node.own_instance is None else str(node.own_instance),
        node.after,
        node.attempt,
        node.fault_code,
        node.fault_message,
        node.finished_at,
        node.rule.name.lower(),
        runtime.reruns.skip_reason(view, node),
        node.chosen,
        None if node.map is None else MapInfo(node.map.total, node.map.ended, node.map.failed),
        _child_info(node),
        None if (sensor := node.sensor) is None else SensorInfo(sensor.polls, sensor.deadline_at, sensor.next_at),
    )


def _child_info(node: "runtime.NodeNow") -> ChildRunInfo | None:
    if (child := node.child_run) is None:
        return None
    return ChildRunInfo(child.workflow, None if child.id is None else str(child.id), child.attempt)


class Run:
    """One run of a workflow. `last` is the run as it was last read; `duplicate`: the key had started it before."""

    __slots__ = ("_home", "_shapes", "duplicate", "id", "last", "workflow")

    def __init__(self, home: Home, info: RunInfo, shapes: Mapping[str, Shape[Any]], *, duplicate: bool = False) -> None:
        self.id = info.id
        self.workflow = info.workflow
        self.last = info
        self.duplicate = duplicate
        self._home = home
        self._shapes = shapes

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.workflow!r} {self.last.state}>"

    @property
    def fire_time(self) -> datetime:
        """The time that the run stands for: its slot of the schedule, its logical date, or the time of the trigger."""
        return self.last.fire_time

    async def read(self) -> RunInfo:
        """Return the run with its nodes as they are now. Raises `NotFound` if retention has removed it."""
        scope = (await self._home.client()).scope
        return self._noted(await runtime.reruns.read_run(scope, self.workflow, int(self.id)))

    def _noted(self, view: "runtime.RunView") -> RunInfo:
        self.last = view_info(view)
        return self.last

    async def state(self) -> str:
        """Return the state now: PENDING, RUNNING, BLOCKED, SUCCESS, CANCELLED or DEAD."""
        return (await self.read()).state

    async def wait(self, timeout: float | str | timedelta | None = None) -> str:
        """Wait until the run stops and return its state. Raises TimeoutError with its state after `timeout`.

        BLOCKED is such a state too: a node is dead, and only a replay or a rerun continues the run.
        """

        async def stopped() -> str:
            await self._home.ended(int(self.id))  # the instance that started the run ends with it
            return (await self._until(lambda run: run.state not in UNDER_WAY)).state

        return await self._within(timeout, stopped, f"The run {self.id} of {self.workflow!r} did not end")

    async def result(self, node: Verbs[..., Any] | str, timeout: float | str | timedelta | None = None) -> Any:
        """Wait for a node and return its result.

        Raises InstanceFailed if the node is dead, InstanceCancelled if it was cancelled, InstanceSkipped if it was skipped,
        RunFailed if the run stopped before the node ran, and TimeoutError with the state of the run after `timeout`. The
        result of a map is the list of the results of its items; raises MapFailed if the map is dead or was cancelled. That of a
        node that started a run of another workflow is {"run": its id, "results": the results of its last nodes by name}.
        """
        name = node if isinstance(node, str) else node.name

        async def found() -> Any:
            run = await self._until(lambda run: _is_over(run, name))
            if (there := run.nodes.get(name)) is None:
                raise _no_node(run, name)
            if there.state not in _ENDED:
                raise RunFailed(run, name, _causes(run))
            if there.child_run is not None and there.state == State.SUCCESS.name:
                return await self._child_result(name)
            shape = self._shapes.get(name) or shape_of(Any)
            if there.instance_id is None:
                return await self._map_result(run, there)
            return await Handle[Any](there.job, int(there.instance_id), self._home, shape).result()

        return await self._within(timeout, found, f"The node {name!r} of the run {self.id} did not end")

    async def _child_result(self, name: str) -> Any:
        """Return the id of the run that a node has started, and the results of the last nodes of that run."""
        scope = (await self._home.client()).scope
        view = await runtime.reruns.read_run(scope, self.workflow, int(self.id))
        return next(_json(node.kept_result) for node in view.nodes if node.name == name)

    async def _map_result(self, run: RunInfo, node: RunNodeInfo) -> list[Any]:
        if node.state != State.SUCCESS.name:
            raise MapFailed(run, node)
        return [item.result async for item in self.items(node.name)]

    async def items(self, node: Verbs[..., Any] | str, *, failed: bool = False) -> AsyncGenerator[MapItem]:
        """Yield the items of a map that have been started, in order; with `failed` only those that failed.

        Reads 500 items at a time. Raises NotFound if the node is not a map of this run.
        """
        scope = (await self._home.client()).scope
        name, after = node if isinstance(node, str) else node.name, -1
        shape = self._shapes.get(name) or shape_of(Any)
        while True:
            page = runtime.ItemPage(after, ITEMS_PAGE, failed)
            rows = (await runtime.read_items(scope, self.workflow, int(self.id), name, page)).items
            for row in rows:
                result = None if row.result is None else shape.decode(row.result)
                yield MapItem(row.position, str(row.instance_id), row.state.name, row.error_code, row.error_msg, result)
            if len(rows) < ITEMS_PAGE:
                return
            after = rows[-1].position

    async def rerun(self, *, from_node: Verbs[..., Any] | str) -> RunInfo:
        """Run a node and all nodes after it again, in this run. Raises `Conflict` while one of them is in progress."""
        scope = (await self._home.client()).scope
        name = from_node if isinstance(from_node, str) else from_node.name
        return self._noted(await runtime.reruns.rerun(scope, self.workflow, int(self.id), name))

    async def cancel(self) -> RunInfo:
        """Cancel the run: waiting nodes and all items of maps are cancelled, running nodes finish.

        A second call changes nothing.
        """
        scope = (await self._home.client()).scope
        return self._noted(await runtime.reruns.cancel_run(scope, self.workflow, int(self.id)))

    async def _until(self, is_over: Callable[[RunInfo], bool]) -> RunInfo:
        client: runtime.Client = await self._home.client()
        pause, reads = FIRST_PAUSE, 0
        while not is_over(run := await self.read()):
            await client.rest(pause, reads)
            pause, reads = min(pause * 1.5, LONGEST_PAUSE), reads + 1
        return run

    async def _within(
        self, timeout: float | str | timedelta | None, wait: Callable[[], Awaitable[T]], missed: str
    ) -> T:
        patience = None if timeout is None else seconds_of(timeout).total_seconds()
        deadline = asyncio.timeout(patience)
        try:
            async with deadline:
                return await wait()
        except TimeoutError:
            if patience is None or not deadline.expired():
                raise
            raise TimeoutError(f"{missed} within {patience:g} s: it is {self.last.state}.") from None


def _is_over(run: RunInfo, node: str) -> bool:
    there = run.nodes.get(node)
    return run.state not in UNDER_WAY or (there is not None and there.state in _ENDED) or bool(run.nodes and not there)


def _causes(run: RunInfo) -> str:
    dead = [node.name for node in run.nodes.values() if node.state == State.DEAD.name]
    return f": {', '.join(map(repr, dead))} is dead" if dead else ""


def _no_node(run: RunInfo, node: str) -> Invalid:
    if not run.nodes:
        return Invalid(f"The run {run.id} of {run.workflow!r} is {run.state}: it has not started.")
    return Invalid.field("node", f"{node!r} is not a node of the run {run.id}", f"There are: {', '.join(run.nodes)}.")
