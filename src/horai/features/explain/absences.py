"""The verdict on a slot without an instance: skipped, late, held, upcoming, or missing without a record."""

from datetime import datetime, timedelta

from horai.core.shards import Role
from horai.features.explain.facts import Facts, SkippedSlots
from horai.features.explain.instances import pause_of
from horai.features.explain.phrases import AbsenceWords as Say
from horai.features.explain.phrases import RunWords
from horai.features.explain.verdicts import Verdict, VerdictText
from horai.features.explain.words import about, local
from horai.text.phrase import Phrase
from horai.time.durations import format_duration
from horai.time.jitter import offset
from horai.time.misfire import MisfireRule, Policy, Stretch
from horai.time.schedule import fires_between

MOST_COUNTED = 1_000
_MOMENT = timedelta(microseconds=1)


def absence_of(facts: Facts, at: datetime) -> VerdictText:
    """Return the verdict on a slot of the job's calendar that has no instance."""
    job = facts.job
    if facts.skip is not None:
        return VerdictText(Verdict.SKIPPED, _skipped(facts, facts.skip))
    if facts.catchup is not None:
        return VerdictText(Verdict.HELD if job.paused_at else Verdict.LATE, _in_line(facts, facts.catchup))
    if at <= job.active_from:
        return VerdictText(Verdict.NOT_A_SLOT, _before_its_time(facts, at))
    if job.missed_from is not None and at >= job.missed_from:
        return VerdictText(Verdict.HELD, RunWords.WITH_REASON(what=pause_of(facts), reason=_in_pause(facts, at)))
    if facts.cursor is None or facts.cursor.fire_time is None:
        return _asleep(facts, at)
    if at > facts.now:
        return VerdictText(Verdict.COMING, _coming(facts, at))
    if facts.cursor.fire_time > at or (facts.cursor.fire_time == at and job.id <= facts.cursor.last_job):
        return VerdictText(Verdict.MISSED, Say.NO_TRACE())
    return VerdictText(Verdict.LATE, _late(facts, at))


def _skipped(facts: Facts, skip: SkippedSlots) -> Phrase:
    cause, _, policy = skip.reason.partition("_")
    slots = _range(facts, skip)
    match cause, policy.lower():
        case "PAUSED", "":
            return Say.SKIPPED_PAUSED(slots=slots)
        case "MISFIRE" | "PAUSED", Policy.skip | Policy.once | Policy.all as late:
            came = Say.NOT_IN_TIME() if cause == "MISFIRE" else Say.WAS_PAUSED()
            return Say.SKIPPED_LATE(cause=came, policy=_BY_POLICY[Policy(late)](), slots=slots)
        case "THINNED", _:
            return Say.SKIPPED_THINNED()
        case "JOB", "changed":
            return Say.SKIPPED_CHANGED(slots=slots)
        case _:
            return Say.SKIPPED_FOR(slots=slots, reason=skip.reason)


_BY_POLICY = {Policy.skip: Say.BY_SKIP, Policy.once: Say.BY_ONCE, Policy.all: Say.BY_ALL}


def _range(facts: Facts, skip: SkippedSlots) -> Phrase:
    first, last = local(skip.from_time, facts.job.place), local(skip.to_time, facts.job.place)
    if skip.slots == 1 or first == last:
        return Say.ONE_SLOT(at=first)
    if skip.slots is None:
        return Say.SLOTS(first=first, last=last)
    return Say.COUNTED_SLOTS(count=skip.slots, first=first, last=last)


def _in_line(facts: Facts, left: Stretch) -> Phrase:
    count = _count(facts, left)
    if facts.job.paused_at is not None:
        return Say.IN_LINE_PAUSED(count=count, pause=pause_of(facts))
    return Say.IN_LINE(count=count)


def _count(facts: Facts, left: Stretch) -> Phrase:
    schedule = facts.job.timing.schedule
    if schedule is None:
        return Say.SOME()
    count = sum(1 for _ in fires_between(schedule, left.first - _MOMENT, left.last, MOST_COUNTED + 1))
    return Say.COUNT(count=count) if count <= MOST_COUNTED else Say.MORE_THAN(count=MOST_COUNTED)


def _before_its_time(facts: Facts, at: datetime) -> Phrase:
    job = facts.job
    if at <= job.created_at:
        return Say.NOT_CREATED(at=local(job.created_at, job.place))
    return Say.NOT_FOLLOWED(at=local(job.active_from, job.place))


def _in_pause(facts: Facts, at: datetime) -> Phrase:
    told = _on_resume(facts.job.timing.misfire)
    return Say.UNLESS_RESUMED(then=told) if at > facts.now else told


def _on_resume(misfire: MisfireRule) -> Phrase:
    match misfire.policy:
        case Policy.skip:
            return Say.RESUME_SKIP()
        case Policy.once:
            return Say.RESUME_ONCE()
        case Policy.all:
            return Say.RESUME_ALL(bounds=_bounds(misfire))


def _bounds(misfire: MisfireRule) -> str:
    match misfire.max_catchup, misfire.window:
        case None, None:
            return ""
        case None, timedelta() as window:
            return Say.NONE_OLDER(window=format_duration(window))
        case int() as most, None:
            return Say.NEWEST(most=most)
        case most, window:
            return Say.NEWEST_NONE_OLDER(most=most, window=format_duration(window))


def _asleep(facts: Facts, at: datetime) -> VerdictText:
    if at <= facts.now:
        return VerdictText(Verdict.MISSED, Say.NO_TRACE())
    return VerdictText(Verdict.HELD, Say.ASLEEP())


def _coming(facts: Facts, at: datetime) -> Phrase:
    job, duration = facts.job, about(at - facts.now)
    behind = offset(job.id, job.timing.jitter)
    if not behind:
        return RunWords.DUE_IN(duration=duration)
    return Say.COMES_BY_JITTER(duration=duration, at=local(at + behind, job.place))


def _late(facts: Facts, at: datetime) -> Phrase:
    late, misfire = facts.now - at, facts.job.timing.misfire
    if late <= misfire.after:
        then = Say.COUNTS_AS_IN_TIME(after=format_duration(misfire.after))
    else:
        then = Say.STILL_BY_ALL() if misfire.policy is Policy.all else _BY_POLICY[misfire.policy]()
    nobody = "" if Role.scheduler in facts.roles else Say.NOBODY_MAKES_SLOTS()
    return Say.LATE(duration=about(late), nobody=nobody, then=then)
