"""Explanations why a slot fired, waits, was held or skipped: facts in, a verdict and plain sentences out.

| module    | contents                                                                       |
|-----------|--------------------------------------------------------------------------------|
| phrases   | every sentence of an explanation                                               |
| words     | times and durations as text                                                    |
| moments   | the question: an instant, or a local time that occurs once, twice or never     |
| facts     | the facts that the store has about one job around one instant                  |
| verdicts  | the verdicts, and the answer that carries one                                  |
| slots     | whether an instant is a slot, why not, and the slots around it                 |
| instances | the verdict on an instance                                                     |
| absences  | the verdict on a slot without an instance                                      |
| answers   | the complete explanation                                                       |
| store     | the statements that read the facts                                             |
| service   | the facts of one snapshot, turned into an explanation                          |
"""

from horai.features.explain.answers import explanation_of, nothing_there
from horai.features.explain.facts import (
    CursorFact,
    Facts,
    InstanceFact,
    JobFacts,
    Other,
    Parent,
    QueueFact,
    SkippedSlots,
)
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
    "QueueFact",
    "SkippedSlots",
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
