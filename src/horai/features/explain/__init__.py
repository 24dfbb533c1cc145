"""Why a slot fired, waits, was held or skipped: facts in, a verdict and plain sentences out.

| module   | promise                                                                         |
|----------|---------------------------------------------------------------------------------|
| phrases  | all that may be said                                                            |
| moments  | what was asked: an instant, or a time on the wall that comes once, twice, never |
| facts    | all that the store knows of one job around one instant                          |
| slots    | whether an instant is a slot, why not, and which slots are around it            |
| runs     | the verdict on an instance                                                      |
| absences | the verdict on a slot without one                                               |
| answers  | the explanation, put together                                                   |
"""

from horai.features.explain.answers import explanation_of, nothing_there
from horai.features.explain.facts import CursorFact, Facts, InstanceFact, JobFacts, Other, Parent, Queue, Skip
from horai.features.explain.instances import holds_of, story_of
from horai.features.explain.moments import ACCEPTED, Gap, gap_around, occurrences, read_moment
from horai.features.explain.phrases import AbsenceWords, RunWords, SlotWords, StateName
from horai.features.explain.slots import is_slot, lost_in_gap
from horai.features.explain.verdicts import Hindrance, Hold, SlotExplanation, Verdict
from horai.features.feature import Feature

__all__ = [
    "ACCEPTED",
    "FEATURE",
    "CursorFact",
    "Facts",
    "Gap",
    "Hindrance",
    "Hold",
    "InstanceFact",
    "JobFacts",
    "Other",
    "Parent",
    "Queue",
    "Skip",
    "SlotExplanation",
    "Verdict",
    "explanation_of",
    "gap_around",
    "holds_of",
    "is_slot",
    "lost_in_gap",
    "nothing_there",
    "occurrences",
    "read_moment",
    "story_of",
]

FEATURE = Feature("explain", routes=("routes",), phrases=(RunWords, AbsenceWords, SlotWords, StateName))
