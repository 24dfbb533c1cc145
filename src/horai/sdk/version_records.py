"""The records of a durable function that name the version of its code (code_versions.py)."""

import random
from collections.abc import Iterable, Mapping

from horai.core.retry import Jitter, RetryPolicy, backoff
from horai.features.steps.rules import Kind, StepId, StepRecord, StepReport, StepState
from horai.sdk.code_versions import FIRST, MOST

OFFERS = RetryPolicy(max_retry=MOST, jitter=Jitter.ADDITIVE)
"""The pauses between two offers of an instance whose version its worker does not declare: up to an hour."""


def version_of(records: Iterable[StepId]) -> int | None:
    """Return the version of the code that an instance belongs to; None if it has no records yet."""
    ids = list(records)
    if not ids:
        return None
    return max((id_.n for id_ in ids if id_ == mark_of(id_.n)), default=FIRST)


def mark_of(version: int) -> StepId:
    """Return the record by which an instance belongs to a version."""
    return StepId(Kind.VERSION, "version", version)


def offer_of(version: int) -> StepId:
    """Return the record of an instance that waits for a worker that declares its version."""
    return StepId(Kind.VERSION, "offer", version)


def next_offer(version: int, records: Mapping[StepId, StepRecord]) -> StepReport:
    """Return the record that offers the instance again after a pause, which grows."""
    known = records.get(offer_of(version))
    tries = 1 if known is None else known.tries + 1
    return StepReport(offer_of(version), StepState.OPEN, tries, backoff(OFFERS, tries, random.uniform))
