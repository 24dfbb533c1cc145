"""`job.explain(at)`: why a slot fired, waits, was held or skipped."""

from dataclasses import dataclass
from datetime import datetime

from horai.features.explain import Skip, Verdict
from horai.features.explain.service import ExplainResult, explain_slot
from horai.operations.scope import Scope


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of an instant in the life of a job.

    `local` is the same instant by the clock of the job's zone; `previous` and `next` are the slots around it; `skip` is
    the range of slots with which it was left out. `also` is the other occurrence of a time that the clock showed twice.
    """

    at: datetime
    local: str
    verdict: Verdict
    why: str
    instance_id: str | None
    skip: Skip | None
    previous: datetime | None
    next: datetime | None
    also: "Explanation | None" = None


async def explanation(scope: Scope, job: str, at: datetime | str) -> Explanation:
    """The explanation of an instant, or without an offset of a time by the clock of the job's zone."""
    return _shown(await explain_slot(scope, job, at))


def _shown(explained: ExplainResult) -> Explanation:
    told = explained.explanation
    return Explanation(
        told.at,
        told.local,
        told.verdict,
        told.why,
        None if explained.instance is None else str(explained.instance.id),
        told.skip,
        told.previous,
        told.next,
        None if explained.also is None else _shown(explained.also),
    )
