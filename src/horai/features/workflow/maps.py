"""Maps of runs: start one with its list, make its items a window at a time, count their ends, and end the node.

Everything happens in the transaction that decides on the run and has locked its row: an item is made once, because the
same transaction counts it as made. A process that dies meanwhile has done all of it or nothing. Items are ordinary
instances; their settlement does not know of the map. Only the decisions on the run count them.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from horai.core.errors import Conflict, KeyUnavailable
from horai.core.limits import RESULT_LIMIT
from horai.core.node_results import own_result
from horai.core.sealed_values import SealedColumn
from horai.core.states import State
from horai.core.stored_text import TRUNCATED
from horai.db import instances
from horai.db.claims import Claimable
from horai.db.instances import CancelledRow
from horai.db.pool import AnyWrite
from horai.features.workflow import map_store
from horai.features.workflow.map_settings import ITEMS_LIMIT, flattened, item_text, items_in, items_in_payload
from horai.features.workflow.map_store import MapState, MapWrite
from horai.features.workflow.run_store import HeldRun, RunNode, Seen
from horai.features.workflow.sealed_nodes import WaitsForKey, opened_texts
from horai.features.workflow.trigger_rules import NODE_FAULTS, NodeCause
from horai.operations.keyring import Keyring
from horai.operations.sealed_values import SealedJob, seal_texts

PAGE = 1_000
"""The number of results of items that are read at once."""
MADE_AT_ONCE = 1_000
"""The most items that one decision makes: they run while the next decision makes more."""
BULK = 1_000
"""The number of items under way from which a map need not be looked at again at once: they keep the workers busy."""
LISTS_PAGE = 50
"""The number of results that are lists of items, of up to 64 kB each, that are read at once."""


class _NoList(Exception):
    """The value that a map goes over is not a list that Horai can take."""

    def __init__(self, fault: NodeCause) -> None:
        super().__init__(fault.name)
        self.fault = fault


@dataclass(slots=True)
class MapDecisions:
    """The part of one decision on runs that concerns maps.

    `woken` are new items, `revoked` running items that were cancelled with their run, `opened` the nodes that have
    started, by their reserved ids, `over` runs with a map that has ended at its start, because it has no items, and
    `without_key` runs of which a map waits for an encryption key. `unfilled` runs have a map with room for more items.
    `is_in_bulk`: a map has `BULK` items under way.
    """

    connection: AnyWrite
    keyring: Keyring
    since: datetime
    woken: list[Claimable] = field(default_factory=list[Claimable])
    revoked: list[CancelledRow] = field(default_factory=list[CancelledRow])
    opened: set[int] = field(default_factory=set[int])
    over: set[int] = field(default_factory=set[int])
    without_key: set[int] = field(default_factory=set[int])
    unfilled: set[int] = field(default_factory=set[int])
    is_in_bulk: bool = False

    async def look(
        self, held: HeldRun, node: RunNode, sources: Sequence[RunNode], *, is_given_up: bool
    ) -> tuple[RunNode, Seen]:
        """Count the ends of items and make the next ones. Return the node and its state.

        `sources` are the nodes of the run, among them the one that the map goes over.
        """
        state = node.map
        if state is None:
            raise AssertionError(f"{node.name} is not a map")
        if node.ended is not None:
            if node.cause is not NodeCause.MAP_FAILED or (state := await self._reopened(state)) is None:
                return node, Seen(node.ended)
            node = replace(node, ended=None, cause=None)
        if node.cause is not None:
            return node, _dead(node.cause)
        if state.total is None:
            return node, Seen(State.BLOCKED)
        return await self._advanced(held, replace(node, map=state), sources, is_given_up=is_given_up)

    async def start(
        self, held: HeldRun, node: RunNode, sources: Sequence[RunNode], states: Mapping[str, State]
    ) -> None:
        """Start a node whose trigger rule is met, with its first items. Raises `WaitsForKey` if a key is missing.

        If there are no items, or no list, another decision on the run ends the node.
        """
        state = node.map
        if state is None:
            raise AssertionError(f"{node.name} is not a map")
        try:
            total = await self._count(held, state, sources, states)
        except _NoList as error:
            await map_store.set_map(self.connection, replace(state, total=0), MapWrite(error.fault, is_over=True))
            self.over.add(held.id)
            return
        state = await self._filled(held, replace(node, map=replace(state, total=total)), sources)
        await map_store.set_map(self.connection, state, MapWrite())
        if total:
            self.opened.add(node.instance_id)
        else:
            self.over.add(held.id)

    async def _reopened(self, state: MapState) -> MapState | None:
        """Return a dead map that goes on, because dead items of it were replayed; None if none was."""
        followed = await map_store.follow_item_replays(self.connection, state.key)
        if not followed:
            return None
        state = replace(state, ended=state.ended - followed, failed=state.failed - followed)
        await map_store.set_map(self.connection, state, MapWrite(is_reopened=True))
        return state

    async def _advanced(
        self, held: HeldRun, node: RunNode, sources: Sequence[RunNode], *, is_given_up: bool
    ) -> tuple[RunNode, Seen]:
        before = node.map
        fault: NodeCause | None = None
        result: str | None = None
        if before is None:
            raise AssertionError(f"{node.name} is not a map")
        state = await self._counted(before)
        if is_given_up:
            state = await self._cancelled(held, state)
            end = Seen(State.RUNNING if state.open else State.CANCELLED)
        else:
            state = await self._with_replays(state)
            try:  # after an error, the counts are written all the same: the ends of items are recorded
                state = await self._filled(held, replace(node, map=state), sources)
                end = _end_of(state)
                if end.state is State.SUCCESS:
                    result = await self._result(held, node, state)
            except WaitsForKey:
                self.without_key.add(held.id)
                end = Seen(State.RUNNING)
            except _NoList as error:  # the row that held the list was deleted by hand
                fault, end = error.fault, _dead(error.fault)
            if end.state is State.DEAD:
                fault = fault or NodeCause.MAP_FAILED
        is_over = end.state is not State.RUNNING
        self.is_in_bulk |= state.open >= BULK
        if state != before or is_over:
            await map_store.set_map(self.connection, state, MapWrite(fault, result, is_over=is_over))
        return replace(node, map=state, cause=fault), end

    async def _with_replays(self, state: MapState) -> MapState:
        """Return the map, whose dead items go on with their replays if nothing else is under way."""
        while state.open == 0 and state.failed:
            followed = await map_store.follow_item_replays(self.connection, state.key)
            if not followed:
                break
            state = await self._counted(replace(state, ended=state.ended - followed, failed=state.failed - followed))
        return state

    async def _counted(self, state: MapState) -> MapState:
        ended, failed = await map_store.note_item_ends(self.connection, state.key, self.since)
        return replace(state, ended=state.ended + ended, failed=state.failed + failed) if ended else state

    async def _cancelled(self, held: HeldRun, state: MapState) -> MapState:
        """Cancel all items that have not ended, also running ones. Their calls get the cancel after the commit."""
        if state.open == 0:
            return state
        ids = await map_store.open_items(self.connection, state.key)
        rows = await instances.cancel_live(self.connection, ids, held.reason, running=True)
        self.revoked += [row for row in rows if row.fence is not None]
        return await self._counted(state)

    async def _filled(self, held: HeldRun, node: RunNode, sources: Sequence[RunNode]) -> MapState:
        """Make items until as many have an instance as may be under way, at most `MADE_AT_ONCE`.

        After too many failures make none.
        """
        state = node.map
        if state is None or state.total is None:
            raise AssertionError(f"{node.name} has no list")
        room = min(state.settings.most_open - state.open, state.total - state.made)
        if room <= 0 or state.failed > state.settings.allowed_failures(state.total):
            return state
        items = await self._items(held, state, sources, state.made, state.made + min(room, MADE_AT_ONCE))
        payloads = await self._sealed(held, node, SealedColumn.PAYLOAD, items)
        self.woken += await map_store.make_items(self.connection, state, held.fire_time, payloads)
        if 0 < len(payloads) < room:  # not before: a map that waits for a key would be decided on without a pause
            self.unfilled.add(held.id)
        return replace(state, made=state.made + len(payloads))

    async def _count(
        self, held: HeldRun, state: MapState, sources: Sequence[RunNode], states: Mapping[str, State]
    ) -> int:
        """Return the number of items. Raises `_NoList`, also if the node that should return the list has not succeeded."""
        source = _source(state, sources)
        if source is not None and states[source.name] is not State.SUCCESS:
            raise _NoList(NodeCause.MAP_NOT_LIST)
        if source is None or source.map is None:
            total = len(await self._list(held, state, source))
        elif state.settings.flatten:
            total = sum([len(found) async for found in self._lists(held, source)])
        else:
            total = source.map.total or 0
        if total > ITEMS_LIMIT:
            raise _NoList(NodeCause.MAP_TOO_LONG)
        return total

    async def _items(
        self, held: HeldRun, state: MapState, sources: Sequence[RunNode], first: int, last: int
    ) -> list[str | None]:
        """Return the items at positions from `first` to before `last`, as JSON texts."""
        source = _source(state, sources)
        if source is None or source.map is None:
            return [item_text(item) for item in (await self._list(held, state, source))[first:last]]
        if not state.settings.flatten:
            return await self._results(held, source, source.map, first, last)
        items, begin = list[str | None](), 0
        async for found in self._lists(held, source):
            items += [item_text(item) for item in found[max(first - begin, 0) : max(last - begin, 0)]]
            begin += len(found)
        return items

    async def _lists(self, held: HeldRun, source: RunNode) -> AsyncGenerator[list[msgspec.Raw]]:
        """Yield the results of the items of a map, each of which is a list or null. Raises `_NoList` for any other."""
        assert source.map is not None  # noqa: S101 — the callers checked it
        total = source.map.total or 0
        for first in range(0, total, LISTS_PAGE):
            for text in await self._results(held, source, source.map, first, min(first + LISTS_PAGE, total)):
                found = list[msgspec.Raw]() if text is None else items_in(text)
                if found is None:
                    raise _NoList(NodeCause.MAP_NOT_LIST)
                yield found

    async def _results(self, held: HeldRun, node: RunNode, state: MapState, first: int, last: int) -> list[str | None]:
        """Return the results of items of a map, as they were returned. Raises `WaitsForKey`."""
        found = await map_store.item_results(self.connection, state.key, self.since, first, last)
        opened = await opened_texts(self.connection, self.keyring, held.tenant_id, node.sealed_for, found)
        return [own_result(text) for text in opened]

    async def _list(self, held: HeldRun, state: MapState, source: RunNode | None) -> list[msgspec.Raw]:
        """Return all items of a list that one node returned, or of a list in the payload. Raises `_NoList`."""
        if source is None:
            payload = await map_store.payload_of_run(self.connection, held.id)
            items = items_in_payload(payload, state.settings.over_payload or "")
        else:
            stored = await map_store.result_to_map(self.connection, source.instance_id, self.since)
            if stored == TRUNCATED:
                raise _NoList(NodeCause.MAP_TRUNCATED)
            (text,) = await opened_texts(self.connection, self.keyring, held.tenant_id, source.sealed_for, [stored])
            items = items_in(own_result(text))
        if items is not None and state.settings.flatten:
            items = flattened(items)
        if items is None:
            raise _NoList(NodeCause.MAP_NOT_LIST)
        return items

    async def _result(self, held: HeldRun, node: RunNode, state: MapState) -> str:
        """Return the results of all items as a list, as it is stored: `TRUNCATED` above 64 kB.

        An item that failed or was skipped has the result null.
        """
        assert state.total is not None  # noqa: S101 — the map has ended
        parts, size = list[str](), 2
        for first in range(0, state.total, PAGE):
            last = min(first + PAGE, state.total)
            texts = [text or "null" for text in await self._results(held, node, state, first, last)]
            size += sum(len(text.encode()) + 1 for text in texts)
            if size > RESULT_LIMIT:
                return TRUNCATED
            parts += texts
        text = f"[{','.join(parts)}]"
        return (await self._sealed(held, node, SealedColumn.RESULT, [text]))[0] or "[]"

    async def _sealed(
        self, held: HeldRun, node: RunNode, column: SealedColumn, texts: list[str | None]
    ) -> list[str | None]:
        """Return values of a node as they are stored. Raises `WaitsForKey` if its job is encrypted and the key is missing."""
        if node.sealed_for is None:
            return texts
        try:
            return await seal_texts(
                self.connection, self.keyring, SealedJob(held.tenant_id, node.sealed_for), column, texts
            )
        except (KeyUnavailable, Conflict):
            raise WaitsForKey from None


def _source(state: MapState, nodes: Sequence[RunNode]) -> RunNode | None:
    """Return the node that a map goes over; None if it goes over the payload of the run."""
    over = state.settings.over
    return None if over is None else next(node for node in nodes if node.name == over)


def _dead(fault: NodeCause) -> Seen:
    return Seen(State.DEAD, NODE_FAULTS[fault].code)


def _end_of(state: MapState) -> Seen:
    """Return the state of a map by its counts. Items that are under way end before a map that failed."""
    assert state.total is not None  # noqa: S101 — a map that runs has a total
    may_go_on = state.failed <= state.settings.allowed_failures(state.total)
    if state.open or (may_go_on and state.made < state.total):
        return Seen(State.RUNNING)
    return Seen(State.SUCCESS) if may_go_on else _dead(NodeCause.MAP_FAILED)
