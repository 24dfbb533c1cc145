"""`job.explain(at)`: why a slot fired, waits, was held or skipped."""

from dataclasses import dataclass
from datetime import datetime

from horai.features.explain import SkippedSlots, Verdict
from horai.features.explain.service import ExplainResult, explain_slot
from horai.operations.scope import Scope


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one instant of a job: why it fired, waits, was held or skipped, or is not a slot.

    `local` is the same instant by the clock of the job's zone; `previous` and `next` are the slots around it; `skip` is
    the range of slots that was skipped together with it. `also` is the other occurrence of a time that the clock showed
    twice.
    """

    at: datetime
    local: str
    verdict: Verdict
    why: str
    instance_id: str | None
    skip: SkippedSlots | None
    previous: datetime | None
    next: datetime | None
    also: "Explanation | None" = None


async def explanation(scope: Scope, job: str, at: datetime | str) -> Explanation:
    """Explain an instant; without an offset, `at` is a time by the clock of the job's zone."""
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
