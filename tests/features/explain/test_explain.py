"""Why a slot fired, waits, was held or skipped: facts in, a verdict and its sentences out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai.core.queue import QueueSettings, parse_rate
from horai.core.shards import Role
from horai.core.states import CancelReason, State
from horai.core.stuck import SAMPLES, LongRun, StuckRun, UsualRun
from horai.core.timing import Timing
from horai.features.explain import (
    CursorFact,
    Facts,
    InstanceFact,
    JobFacts,
    Other,
    QueueFact,
    SkippedSlots,
    SlotExplanation,
    Verdict,
    explanation_of,
)
from horai.time.jitter import offset
from horai.time.misfire import MisfireRule, Policy, Stretch
from horai.time.overlap import Overlap
from horai.time.schedule import CronSchedule, EverySchedule

AT = datetime(2026, 11, 16, 9, tzinfo=UTC)
"""A Monday, and a slot of `DAILY`."""
CREATED = datetime(2026, 11, 1, tzinfo=UTC)
DAILY = Timing(CronSchedule("0 9 * * *"))


def second(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def told(at: datetime = AT, timing: Timing = DAILY, now: datetime | None = None, **known: Any) -> SlotExplanation:
    """Explain `at`, one minute after the slot, for a job that is five days old."""
    paused_at = known.pop("paused_at", None)
    of_job = {name: known.pop(name) for name in ("note", "handler") if name in known}
    job = JobFacts(7, timing, CREATED, CREATED, paused_at, missed_from=paused_at, **of_job)
    return explanation_of(Facts(now or second(60), job, **known), at)


def run(state: State, **changes: Any) -> InstanceFact:
    usual = InstanceFact(5, state, True, AT, attempt=1, claimed_at=second(0.2), finished_at=second(2.2))
    return replace(usual, **changes)


def waiting(**changes: Any) -> InstanceFact:
    usual = InstanceFact(5, State.INIT, True, AT, due=AT)
    return replace(usual, **changes)


def test_a_success_is_told_with_its_attempt_and_its_times():
    first = told(run=run(State.SUCCESS))
    assert (first.verdict, first.instance_id, first.local) == (Verdict.FIRED, 5, "2026-11-16T09:00:00+00:00")
    assert first.why == (
        "Fired as instance 5: SUCCESS in its first attempt, which began 200ms after the due time and took 2s."
    )
    assert "SUCCESS in attempt 3, which began" in told(run=run(State.SUCCESS, attempt=3)).why
    assert (first.previous, first.next) == (AT - timedelta(days=1), AT + timedelta(days=1))


def test_a_dead_run_has_fired_and_says_what_it_died_of():
    dead = told(run=run(State.DEAD, attempt=6, error="HTTP_500: no"))
    assert dead.verdict is Verdict.FIRED
    assert "DEAD with HTTP_500: no in attempt 6" in dead.why


def test_a_running_one_is_told_with_its_node():
    running = told(run=run(State.RUNNING, node="berlin-1", attempt=2))
    assert running.verdict is Verdict.RUNNING
    assert running.why == "Instance 5 runs on node berlin-1 since 2026-11-16T09:00:00.200000+00:00 (attempt 2)."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (CancelReason.USER, "by a user"),
        (CancelReason.SUPERSEDED, "took its place"),
        (CancelReason.PARENT, "did not succeed"),
        (CancelReason.JOB_DELETED, "its job was deleted"),
    ],
)
def test_a_cancelled_one_says_why(reason: CancelReason, words: str):
    cancelled = told(run=run(State.CANCELLED, reason=reason))
    assert cancelled.verdict is Verdict.CANCELLED
    assert cancelled.why.startswith("Instance 5 was cancelled at 2026-11-16T09:00:02.2")
    assert words in cancelled.why


def overlapped(overlap: Overlap, *others: Other) -> str:
    timing = replace(DAILY, overlap=overlap)
    return told(timing=timing, run=run(State.CANCELLED, reason=CancelReason.OVERLAP), others=others).why


def test_a_slot_that_yielded_names_the_run_it_yielded_to():
    before = Other(3, AT - timedelta(days=1), True, claimed_at=AT - timedelta(days=1))
    by_hand = Other(4, second(-5), False, claimed_at=second(-5))
    after = Other(6, second(1), True)

    assert overlapped(Overlap.skip, by_hand, before).endswith(
        "instance 3 was still in progress, and by overlap skip a slot yields to it."
    )
    assert "another run of the job was in progress" in overlapped(Overlap.skip)
    assert "the slot of 2026-11-16T09:00:01+00:00 (instance 6) took its place" in overlapped(
        Overlap.replace, before, after
    )
    assert "1,000 slots waited before it" in overlapped(Overlap.queue, before)
    assert "instance 4 was still in progress, which the job did not allow then" in overlapped(Overlap.allow, by_hand)


def test_a_retry_says_when_it_comes_and_what_went_wrong():
    lost = told(run=waiting(state=State.FAIL, attempt=2, due=second(90), error="NODE_LOST: gone", is_lost=True))
    assert "ran beside a crash in attempt 2, which does not count as a failure: it is tried again at" in lost.why
    failed = told(run=waiting(state=State.FAIL, attempt=2, due=second(90), error="TIMEOUT"))
    assert failed.verdict is Verdict.WAITING
    assert failed.why == "Instance 5 failed in attempt 2 with TIMEOUT: it is tried again at 2026-11-16T09:01:30+00:00."


def test_jitter_says_how_far_behind_it_puts_the_job():
    jittered = told(timing=replace(DAILY, jitter=timedelta(minutes=5)), run=waiting(due=second(120)))
    assert jittered.verdict is Verdict.WAITING
    assert "waits until 2026-11-16T09:02:00+00:00: the jitter of the job delays its slots" in jittered.why


def test_a_due_instance_is_about_to_be_claimed_or_names_its_possible_obstacles():
    soon = told(run=waiting(), now=second(0.12))
    assert (soon.verdict, soon.why) == (
        Verdict.WAITING,
        "Instance 5 has been due for 120ms and is about to be claimed.",
    )
    paced = QueueFact("mail", QueueSettings(rate=parse_rate("5/m")))
    slow = told(run=waiting(), queue=paced, handler="send")
    assert slow.verdict is Verdict.WAITING
    assert "due for 1m and has not been claimed: its queue mail starts no more than 5/m, or others" in slow.why
    assert "no live worker may have its function send" in slow.why


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"paused_at": second(-60), "note": "stock-taking"}, "the job is paused since 2026-11-16T08:59:00+00:00 (stock-taking)"),
        ({"queue": QueueFact("mail", QueueSettings(paused=True))}, "its queue mail is paused"),
        ({"queue": QueueFact("mail", QueueSettings(max_concurrency=2), 2)}, "its queue mail runs 2 at once, and 2 is its limit"),
        ({"roles": frozenset({Role.scheduler, Role.worker})}, "no live node makes HTTP calls"),
        ({"roles": frozenset({Role.executor}), "handler": "send"}, "no worker is alive, and its function send needs one"),
    ],
)  # fmt: skip
def test_an_instance_that_is_held_back_names_its_obstacle(known: dict[str, Any], words: str):
    held = told(run=waiting(), **known)
    assert held.verdict is Verdict.HELD
    assert words in held.why


def test_a_full_queue_names_the_runs_that_hold_its_slots_longest_and_how_many_others_do():
    queue = QueueFact("mail", QueueSettings(max_concurrency=7), 7)
    holders = tuple(LongRun(n, 1, "slow", "mail", None, 1, "node", second(-600 + n)) for n in range(11, 16))

    held = told(run=waiting(), queue=queue, long_holders=holders)

    assert held.why.startswith(
        "Instance 5 is held: its queue mail runs 7 at once, and 7 is its limit; those that run longest: "
        "instance 11 of slow since 2026-11-16T08:50:11+00:00, instance 12 of slow since 2026-11-16T08:50:12+00:00,"
    )
    assert held.why.endswith("instance 15 of slow since 2026-11-16T08:50:15+00:00, 2 more.")


@pytest.mark.parametrize(
    ("usual", "words"),
    [
        (UsualRun(SAMPLES, timedelta(seconds=5), timedelta(days=1)), "because 95 % of the runs of its job end within 5s"),
        (UsualRun(1, timedelta(seconds=5), timedelta(minutes=2)), "because the longest of the few known successes of its job took 2m"),
        (None, "because it has run for over 30m and no usual duration of its job is known"),
    ],
)  # fmt: skip
def test_a_stuck_run_says_what_is_known_of_the_usual_duration_of_its_job(usual: UsualRun | None, words: str):
    long = LongRun(5, 1, "slow", "mail", None, 1, "node", AT)
    found = told(run=run(State.RUNNING), stuck=StuckRun(long, usual, AT + timedelta(hours=1)))
    assert f"it is stuck since 2026-11-16T10:00:00+00:00, {words}" in found.why


def test_a_queue_with_room_holds_nothing_and_a_paused_one_holds_what_is_not_due_too():
    roomy = QueueFact("mail", QueueSettings(max_concurrency=2), 1)
    assert told(run=waiting(), queue=roomy).verdict is Verdict.WAITING
    shut = QueueFact("mail", QueueSettings(paused=True))
    assert told(run=waiting(due=second(600)), queue=shut).verdict is Verdict.HELD
    full = QueueFact("mail", QueueSettings(max_concurrency=1), 1)
    assert told(run=waiting(due=second(600)), queue=full).verdict is Verdict.WAITING


def test_a_slot_behind_its_gate_names_the_run_before_it():
    queued = replace(DAILY, overlap=Overlap.queue)
    before = Other(3, AT - timedelta(days=1), True, claimed_at=AT - timedelta(days=1))
    also_held = Other(4, AT - timedelta(hours=1), True, is_parked=True)

    held = told(timing=queued, run=waiting(is_parked=True), others=(also_held, before))
    assert (held.verdict, "by overlap queue it waits until instance 3 has ended" in held.why) == (Verdict.HELD, True)
    assert "this one is next" in told(timing=queued, run=waiting(is_parked=True), others=(also_held,)).why


def test_an_instance_that_is_no_slot_does_not_speak_for_a_slot_at_the_same_time():
    keyed = run(State.SUCCESS, is_slot=False, key="article:42")
    slot = told(run=keyed, cursor=CursorFact(AT + timedelta(days=1)))
    assert (slot.verdict, slot.instance_id) == (Verdict.MISSED, None)

    elsewhere = told(second(7), run=keyed)
    assert elsewhere.verdict is Verdict.FIRED
    assert "Fired as instance 5 of the key 'article:42'" in elsewhere.why
    assert "present schedule" not in elsewhere.why


def test_a_slot_of_an_earlier_schedule_has_fired_and_would_be_none_today():
    assert told(second(7), run=run(State.SUCCESS)).why.endswith("By the job's present schedule this would be no slot.")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("MISFIRE_SKIP", "No node made it in time, and the misfire policy skip makes no late slots: skipped with the 3 slots"),
        ("MISFIRE_ONCE", "No node made it in time, and the misfire policy once makes at most the last"),
        ("MISFIRE_ALL", "No node made it in time, and the misfire policy all makes no late slots beyond its window"),
        ("PAUSED_SKIP", "The job was paused, and the misfire policy skip makes no late slots"),
        ("PAUSED_ONCE", "The job was paused, and the misfire policy once makes at most the last"),
        ("PAUSED_ALL", "The job was paused, and the misfire policy all makes no late slots beyond"),
        ("PAUSED", "It was skipped with the 3 slots"),
        ("JOB_CHANGED", "when the job's schedule was changed"),
        ("LATER_VERSION", "(LATER_VERSION)"),
    ],
)  # fmt: skip
def test_a_skip_is_told_with_its_range_and_its_reason(reason: str, words: str):
    skip = SkippedSlots(AT - timedelta(days=1), AT + timedelta(days=1), 3, reason)
    skipped = told(skip=skip)
    assert (skipped.verdict, skipped.skip) == (Verdict.SKIPPED, skip)
    assert words in skipped.why
    assert "from 2026-11-15T09:00:00+00:00 to 2026-11-17T09:00:00+00:00" in skipped.why


def test_a_skip_of_one_or_of_uncounted_slots_claims_no_number():
    assert "this one slot of 2026-11-16T09:00:00+00:00" in told(skip=SkippedSlots(AT, AT, 1, "MISFIRE_SKIP")).why
    uncounted = told(skip=SkippedSlots(AT, AT + timedelta(days=99_999), None, "PAUSED_ONCE"))
    assert "skipped with the slots from" in uncounted.why


def test_a_late_slot_in_line_says_how_many_are_to_go():
    late = told(catchup=Stretch(AT - timedelta(days=1), AT + timedelta(days=2)))
    assert (late.verdict, late.why) == (
        Verdict.LATE,
        "It is one of 4 late slots that are made bit by bit, in their order.",
    )
    every_second = Timing(EverySchedule(timedelta(seconds=1)))
    many = told(timing=every_second, catchup=Stretch(AT - timedelta(days=1), AT))
    assert "one of more than 1,000 late slots" in many.why
    paused = told(catchup=Stretch(AT, AT), paused_at=second(30))
    assert (paused.verdict, "but the job is paused" in paused.why) == (Verdict.HELD, True)


@pytest.mark.parametrize(
    ("misfire", "words"),
    [
        (MisfireRule(Policy.skip), "the misfire policy skip leaves out the slots of the pause"),
        (MisfireRule(Policy.once), "the misfire policy once makes only the last slot of the pause"),
        (MisfireRule(Policy.all), "the misfire policy all makes the slots of the pause."),
        (MisfireRule(Policy.all, 10, timedelta(hours=6)), "slots of the pause, the newest 10 of them and none older than 6h."),
    ],
)  # fmt: skip
def test_a_slot_in_a_pause_says_what_the_resume_will_make_of_it(misfire: MisfireRule, words: str):
    held = told(timing=replace(DAILY, misfire=misfire), paused_at=second(-1), note="moving house")
    assert held.verdict is Verdict.HELD
    assert held.why.startswith("The job is paused since 2026-11-16T08:59:59+00:00 (moving house): when it is resumed, ")
    assert words in held.why


def test_a_coming_slot_in_a_pause_may_still_be_resumed_for():
    assert "unless it is resumed before" in told(paused_at=second(-90), now=second(-60)).why


def test_before_the_job_there_is_no_slot():
    early = told(datetime(2026, 10, 31, 9, tzinfo=UTC))
    assert (early.verdict, early.why) == (
        Verdict.NOT_A_SLOT,
        "The job was not there yet: it was created at 2026-11-01T00:00:00+00:00.",
    )
    changed = JobFacts(7, DAILY, CREATED, second(30))
    since = explanation_of(Facts(second(60), changed), AT)
    assert since.verdict is Verdict.NOT_A_SLOT
    assert "follows this schedule since 2026-11-16T09:00:30+00:00" in since.why


def test_a_slot_of_the_future_comes_and_is_jittered():
    coming = told(now=second(-7260), cursor=CursorFact(AT))
    assert (coming.verdict, coming.why) == (Verdict.COMING, "Due in 2h1m.")
    jitter = timedelta(hours=1)
    jittered = told(timing=replace(DAILY, jitter=jitter), now=second(-60), cursor=CursorFact(AT))
    assert (AT + offset(7, jitter)).isoformat() in jittered.why


def test_a_sleeping_schedule_holds_what_would_come():
    asleep = told(now=second(-60), cursor=CursorFact(None))
    assert (asleep.verdict, "asleep" in asleep.why) == (Verdict.HELD, True)


def test_a_due_slot_that_is_not_made_yet_is_late_and_counts_as_in_time_for_a_minute():
    late = told(now=second(3), cursor=CursorFact(AT))
    assert (late.verdict, late.why) == (
        Verdict.LATE,
        "Due 3s ago, and not made yet; for 1m it counts as in time.",
    )
    alone = told(now=second(3_600), cursor=CursorFact(AT - timedelta(days=1)), roles=frozenset({Role.api}))
    assert "not made yet: no live node makes slots; the misfire policy once makes at most the last" in alone.why
    every = replace(DAILY, misfire=MisfireRule(Policy.all))
    assert "policy all makes late slots" in told(timing=every, now=second(3_600), cursor=CursorFact(AT)).why


def test_a_half_made_slot_is_late_until_it_has_come_to_the_job():
    assert told(cursor=CursorFact(AT, last_job=6)).verdict is Verdict.LATE
    assert told(cursor=CursorFact(AT, last_job=7)).verdict is Verdict.MISSED


def test_a_past_slot_without_a_trace_is_missed_and_said_so():
    missed = told(cursor=CursorFact(AT + timedelta(days=1)))
    assert missed.verdict is Verdict.MISSED
    assert "neither an instance nor a skip on record" in missed.why
    assert told(cursor=CursorFact(None)).verdict is Verdict.MISSED
