"""Calls of other jobs by durable functions: a transaction that holds the callers creates each child once.

The same request may come again after a lost answer, in a later attempt, or from another worker: a call that is recorded has its
child.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from horai.core.errors import HoraiError
from horai.db import instances
from horai.db.pool import Platform
from horai.features.steps import calls, store
from horai.features.steps.calls import CallOf
from horai.features.steps.rules import StepId, StepRecord, StepState, outcome_of_child
from horai.features.steps.store import Held
from horai.operations.enqueue import require_known

Asked = tuple[int, StepId]
"""A call, as (instance id, identity)."""


@dataclass(slots=True)
class ServedCalls:
    """The claims that hold, those of instances cancelled with compensation, the calls, and the errors of those refused."""

    held: set[Held]
    rewound: set[Held] = field(default_factory=set[Held])
    found: dict[Asked, StepRecord] = field(default_factory=dict[Asked, StepRecord])
    refused: dict[Asked, HoraiError] = field(default_factory=dict[Asked, HoraiError])
    children: list[int] = field(default_factory=list[int])
    """The children that were created."""


async def serve_calls(connection: Platform, batch: Sequence[CallOf]) -> ServedCalls:
    """Create the children of calls that are not recorded, and read the ends of the others. Skips locked callers."""
    async with connection.transaction():
        claims = {(asked.call.instance_id, asked.call.fence): asked.call for asked in batch}
        served = ServedCalls(await store.hold_waits(connection, list(claims.values())))
        served.rewound = await calls.rewound_now(connection, {id_ for id_, _ in served.held}) & served.held
        asked = [one for one in batch if (one.call.instance_id, one.call.fence) in served.held - served.rewound]
        if asked:
            await _take(connection, served, await calls.calls_of(connection, asked))
            await _create(
                connection, served, [one for one in asked if (one.call.instance_id, one.id) not in served.found]
            )
    return served


async def _take(connection: Platform, served: ServedCalls, known: Collection[calls.RecordedCall]) -> None:
    """Read how children have ended, and record their results."""
    ended: list[tuple[int, StepRecord]] = []
    replayed: dict[tuple[int, StepRecord], int] = {}
    for instance_id, record, end in known:
        told = record if end is None or record.state is not StepState.OPEN else outcome_of_child(record, end)
        served.found[instance_id, record.id] = told
        if end is not None and told.state is StepState.OPEN and end.replay is not None:
            replayed[instance_id, record] = end.replay
        elif end is not None and record.state is StepState.OPEN:
            ended.append((instance_id, told))
    if ended:
        await calls.take_calls(connection, ended)
    if replayed:
        await calls.replace_children(connection, replayed)


async def _create(connection: Platform, served: ServedCalls, missing: Sequence[CallOf]) -> None:
    """Create children, one statement for each job, and record their calls. A job that refuses fails only its own calls."""
    by_job: defaultdict[tuple[int, str], list[CallOf]] = defaultdict(list)
    for asked in missing:
        by_job[asked.call.tenant_id, asked.job].append(asked)
    made: list[tuple[CallOf, int]] = []
    for (tenant_id, job), group in by_job.items():
        try:
            async with connection.transaction():
                items = [(None, asked.payload) for asked in group]
                children = await instances.enqueue(connection, tenant_id, job, items)
                await require_known(connection, tenant_id, job, children)
        except HoraiError as error:
            served.refused.update({(asked.call.instance_id, asked.id): error for asked in group})
            continue
        made += zip(group, [child.id for child in children], strict=True)
    if made:
        await calls.open_calls(connection, made)
        for asked, child in made:
            served.found[asked.call.instance_id, asked.id] = StepRecord(asked.id, StepState.OPEN, child=child)
    served.children = [child for _, child in made]
