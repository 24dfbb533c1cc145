"""Finished records of a durable function that its code no longer has: they are ignored, with a warning."""

from collections.abc import Mapping, Sequence

import structlog

from horai.core.calls import Call
from horai.features.steps.rules import Kind, StepId, StepRecord, StepState
from horai.sdk.step_tasks import shown
from horai.sdk.suspension import Watched

log = structlog.get_logger(__name__)

NAMED_IN_CODE = frozenset({Kind.STEP, Kind.SLEEP, Kind.WAIT, Kind.CALL})
UNREACHED = "The function has returned without these finished records, which its code no longer has: "
MOST_SHOWN = 20


def unreached(records: Mapping[StepId, StepRecord], occurrences: Mapping[tuple[Kind, str], int]) -> list[str]:
    """Return the finished records that a function did not come past. `occurrences` counts what it came past, by kind and name."""
    return [
        shown(id_)
        for id_, record in records.items()
        if id_.kind in NAMED_IN_CODE
        and record.state is not StepState.OPEN
        and id_.n > occurrences.get((id_.kind, id_.name), 0)
    ]


def warn_of(names: Sequence[str], call: Call, instance: Watched) -> None:
    """Name the records in the log of the instance and of the worker."""
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    instance.log(f"{UNREACHED}{', '.join(names[:MOST_SHOWN])}{more}", "WARNING")
    log.warning(
        "records are not in the code", job=call.job, instance=call.instance_id, records=list(names[:MOST_SHOWN])
    )
