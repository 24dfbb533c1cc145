"""The complete explanation: the verdict, its sentences, and the slots around it."""

from collections.abc import Sequence
from datetime import datetime

from horai.features.explain.absences import absence_of
from horai.features.explain.facts import AwaitedAsset, Facts, InstanceFact, JobFacts, SkippedSlots
from horai.features.explain.instances import story_of
from horai.features.explain.moments import Gap
from horai.features.explain.phrases import SlotWords
from horai.features.explain.slots import is_slot, next_slot_of, previous_slot, shift_of, why_no_slot
from horai.features.explain.verdicts import SlotExplanation, Verdict, VerdictText
from horai.features.explain.words import local
from horai.text.phrase import Joined, Phrase


def explanation_of(facts: Facts, at: datetime, moved: Phrase | None = None) -> SlotExplanation:
    """Explain the instant `at`. `moved` is the sentence about a requested local time that no clock showed.

    An instance that is not a slot of the schedule does not explain a slot that happens to be at the same time.
    """
    job, is_due_slot = facts.job, is_slot(facts.job.timing, at)
    run = facts.run if facts.run is not None and (facts.run.is_slot or not is_due_slot) else None
    told = _told(facts, run, at, is_due_slot)
    why = [told.why.sentence()]
    if is_due_slot and (moved := moved or shift_of(job.timing.schedule, at)) is not None:
        why.insert(0, moved.sentence())
    if run is not None and run.is_slot and not is_due_slot and job.timing.after_finish is None:
        why.append(SlotWords.NO_LONGER())
    if run is None and facts.assets:
        why.append(_awaited(facts.assets))
    skip = facts.skip if told.verdict is Verdict.SKIPPED else None
    return _answer(job, at, VerdictText(told.verdict, Joined.THEN.all(why)), None if run is None else run.id, skip)


def _awaited(assets: Sequence[AwaitedAsset]) -> Phrase:
    """Say which assets start the job, and which of them it still waits for."""
    named = [
        SlotWords.ASSET_PENDING(name=one.name, count=one.pending)
        if one.pending
        else SlotWords.ASSET_MISSING(name=one.name)
        for one in assets
    ]
    words = SlotWords.WAITS_FOR_ANY if assets[0].is_any else SlotWords.WAITS_FOR_ALL
    return words(assets=Joined.LISTED.all(named))


def _told(facts: Facts, run: InstanceFact | None, at: datetime, is_due_slot: bool) -> VerdictText:
    if run is not None:
        return story_of(facts, run, at)
    if not is_due_slot:
        return VerdictText(Verdict.NOT_A_SLOT, why_no_slot(facts.job.timing, at))
    return absence_of(facts, at)


def nothing_there(job: JobFacts, gap: Gap, why: Phrase) -> SlotExplanation:
    """Explain a local time that no clock showed and that has no slot instead."""
    return _answer(job, gap.end, VerdictText(Verdict.NOT_A_SLOT, why.sentence()))


def _answer(
    job: JobFacts, at: datetime, told: VerdictText, instance_id: int | None = None, skip: SkippedSlots | None = None
) -> SlotExplanation:
    previous, following = previous_slot(job.timing, at), next_slot_of(job.timing, at)
    return SlotExplanation(at, local(at, job.place), told.verdict, told.why, instance_id, skip, previous, following)
