"""What there is to say of a slot without an instance: skipped, late, held, coming, or gone without a trace."""

from datetime import datetime, timedelta

from horai.core.durations import format_duration
from horai.core.explain.facts import Facts, Skip
from horai.core.explain.runs import pause_of
from horai.core.explain.verdicts import Told, Verdict
from horai.core.explain.words import about, local
from horai.core.misfire import Misfire, Policy, Stretch
from horai.core.schedule import fires_between
from horai.core.shards import Role
from horai.core.spread import offset

MOST_COUNTED = 1_000
_MOMENT = timedelta(microseconds=1)


def absence_of(facts: Facts, at: datetime) -> Told:
    """The verdict on a slot of the job's calendar that no instance tells of."""
    job = facts.job
    if facts.skip is not None:
        return Told(Verdict.SKIPPED, _skipped(facts, facts.skip))
    if facts.catchup is not None:
        return Told(Verdict.HELD if job.paused_at else Verdict.LATE, _in_line(facts, facts.catchup))
    if at <= job.active_from:
        return Told(Verdict.NOT_A_SLOT, _before_its_time(facts, at))
    if job.missed_from is not None and at >= job.missed_from:
        return Told(Verdict.HELD, f"{pause_of(facts)}: {_in_pause(facts, at)}")
    if facts.cursor is None or facts.cursor.fire_time is None:
        return _asleep(facts, at)
    if at > facts.now:
        return Told(Verdict.COMING, _coming(facts, at))
    if facts.cursor.fire_time > at or (facts.cursor.fire_time == at and job.id <= facts.cursor.last_job):
        return Told(Verdict.MISSED, _NO_TRACE)
    return Told(Verdict.LATE, _late(facts, at))


_NO_TRACE = (
    "the schedule has passed this slot, and there is neither an instance nor a skip on record: "
    "its history was removed, or the job was another one then"
)


def _skipped(facts: Facts, skip: Skip) -> str:
    cause, _, policy = skip.reason.partition("_")
    which = _range(facts, skip)
    match cause, policy.lower():
        case "PAUSED", "":
            return f"it was skipped with {which}: the job was paused"
        case "MISFIRE" | "PAUSED", Policy.skip | Policy.once | Policy.all as late:
            came = "no node made it in time" if cause == "MISFIRE" else "the job was paused"
            return f"{came}, and {_BY_POLICY[Policy(late)]}: skipped with {which}"
        case "JOB", "changed":
            return f"it was late and still to be made when the job's schedule was changed: skipped with {which}"
        case _:
            return f"it was skipped with {which} ({skip.reason})"


_BY_POLICY = {
    Policy.skip: "the misfire policy skip makes no late slots",
    Policy.once: "the misfire policy once makes at most the last of the late slots",
    Policy.all: "the misfire policy all makes no late slots beyond its window and its maxCatchup",
}


def _range(facts: Facts, skip: Skip) -> str:
    first, last = local(skip.from_time, facts.job.place), local(skip.to_time, facts.job.place)
    if skip.slots == 1 or first == last:
        return f"this one slot of {first}"
    return f"the {'' if skip.slots is None else f'{skip.slots:,} '}slots from {first} to {last}"


def _in_line(facts: Facts, left: Stretch) -> str:
    line = f"it is one of {_count(facts, left)} late slots that are made bit by bit, in their order"
    return f"{line}, but {pause_of(facts)}" if facts.job.paused_at is not None else line


def _count(facts: Facts, left: Stretch) -> str:
    schedule = facts.job.timing.schedule
    if schedule is None:
        return "some"
    count = sum(1 for _ in fires_between(schedule, left.first - _MOMENT, left.last, MOST_COUNTED + 1))
    return f"{count:,}" if count <= MOST_COUNTED else f"more than {MOST_COUNTED:,}"


def _before_its_time(facts: Facts, at: datetime) -> str:
    job = facts.job
    if at <= job.created_at:
        return f"the job was not there yet: it was created at {local(job.created_at, job.place)}"
    return f"the job follows this schedule since {local(job.active_from, job.place)}, and had no such slot before"


def _in_pause(facts: Facts, at: datetime) -> str:
    told = _on_resume(facts.job.timing.misfire)
    return f"unless it is resumed before, this slot falls into the pause, and {told}" if at > facts.now else told


def _on_resume(misfire: Misfire) -> str:
    match misfire.policy:
        case Policy.skip:
            return "when it is resumed, the misfire policy skip leaves out the slots of the pause"
        case Policy.once:
            return "when it is resumed, the misfire policy once makes only the last slot of the pause"
        case Policy.all:
            return f"when it is resumed, the misfire policy all makes the slots of the pause{_bounds(misfire)}"


def _bounds(misfire: Misfire) -> str:
    most = None if misfire.max_catchup is None else f"the newest {misfire.max_catchup:,} of them"
    window = None if misfire.window is None else f"none older than {format_duration(misfire.window)}"
    told = [bound for bound in (most, window) if bound is not None]
    return f", {' and '.join(told)}" if told else ""


def _asleep(facts: Facts, at: datetime) -> Told:
    if at <= facts.now:
        return Told(Verdict.MISSED, _NO_TRACE)
    return Told(Verdict.HELD, "its schedule is asleep: no active job followed it when it last came")


def _coming(facts: Facts, at: datetime) -> str:
    job = facts.job
    behind = offset(job.id, job.timing.jitter)
    told = f"its time comes in {about(at - facts.now)}"
    return f"{told}; the jitter makes it run at {local(at + behind, job.place)}" if behind else told


def _late(facts: Facts, at: datetime) -> str:
    late, misfire = facts.now - at, facts.job.timing.misfire
    told = f"its time came {about(late)} ago, and it is not made yet"
    if Role.scheduler not in facts.roles:
        told += ": no live node makes slots"
    if late <= misfire.after:
        return f"{told}; for {format_duration(misfire.after)} it counts as in time"
    return f"{told}; {_BY_POLICY[misfire.policy]}" if misfire.policy is not Policy.all else f"{told}; {_STILL_MADE}"


_STILL_MADE = "the misfire policy all makes late slots, within its window and its maxCatchup"
