"""Compositions on the wire."""

from typing import Any

from pydantic import Field

from horai.wire.fields import Id, Instant, Model, Text


class ItemsIn(Model):
    """Calls of one job, one for each payload; their results are a list in this order. At most 100,000."""

    job: Text
    payloads: list[Any]


class PartIn(Model):
    """A part of a composition: a call of a `job`, or one of `chain`, `group`, `map` and `chord`.

    A call has a `payload`; without one, that of its job. `takes` names how the call takes the result before it, or the list of results
    before it: `true` as its payload, a name as that member of its payload. Without `takes` the call only waits for it.
    """

    job: Text | None = None
    payload: Any = None
    takes: Any = None
    chain: "list[PartIn] | None" = None
    group: "list[PartIn] | None" = None
    map: ItemsIn | None = None
    chord: "ChordIn | None" = None


class ChordIn(Model):
    """A group, and then a call that may take the list of its results."""

    group: list[PartIn]
    then: PartIn


class CompositionIn(Model):
    """`POST /api/v1/compositions`: exactly one of `chain` (one after the other), `group` (side by side), `map` and `chord`.

    `at`: the time to start; now by default.
    """

    chain: list[PartIn] | None = None
    group: list[PartIn] | None = None
    map: ItemsIn | None = None
    chord: ChordIn | None = None
    at: Instant | None = None


class CompositionAnswer(Model):
    """The run of a composition. It is a run of `workflow`, which has the form of the composition."""

    id: Id
    workflow: str
    workflow_id: Id
    nodes: list[str] = Field(description="The names of its nodes, in the order of the calls.")
