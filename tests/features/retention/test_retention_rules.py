"""The choice of the days of history that are folded and dropped."""

from datetime import UTC, date, datetime, timedelta

from horai.features.retention.rules import (
    Clearing,
    HistoryDays,
    Look,
    OwnTimes,
    is_due_again,
    next_to_fold,
    start_of,
    to_adopt,
    to_clear,
    to_drop,
)

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
TODAY = NOW.date()
WEEK = timedelta(days=7)


def days(first: int, last: int) -> list[date]:
    return [TODAY + timedelta(days=offset) for offset in range(first, last + 1)]


def test_days_are_folded_one_after_the_other_and_today_is_not() -> None:
    history = HistoryDays(NOW, {"instance_history": days(-2, 8)})
    assert next_to_fold(history) == TODAY - timedelta(days=2)
    assert next_to_fold(HistoryDays(NOW, history.days, start_of(TODAY - timedelta(days=1)))) == TODAY - timedelta(
        days=1
    )
    assert next_to_fold(HistoryDays(NOW, history.days, start_of(TODAY))) is None


def test_a_day_is_folded_an_hour_after_its_end() -> None:
    yesterday = start_of(TODAY - timedelta(days=1))
    early = HistoryDays(start_of(TODAY) + timedelta(minutes=59), {"instance_history": days(-1, 0)}, yesterday)
    late = HistoryDays(start_of(TODAY) + timedelta(minutes=60), {"instance_history": days(-1, 0)}, yesterday)
    assert (next_to_fold(early), next_to_fold(late)) == (None, yesterday.date())


def test_the_first_day_may_have_rows_in_the_default_partition_only() -> None:
    stray = TODAY - timedelta(days=5)
    assert next_to_fold(HistoryDays(NOW, {"instance_history": days(-2, 0)}, first_stray=stray)) == stray
    assert next_to_fold(HistoryDays(NOW, {})) is None


def test_strays_are_moved_an_hour_after_the_end_of_their_day_oldest_first() -> None:
    yesterday, before = TODAY - timedelta(days=1), TODAY - timedelta(days=2)
    found = {"event": yesterday, "attempt": before, "instance_history": yesterday, "note": TODAY}
    assert to_adopt(found, start_of(TODAY) + timedelta(minutes=59)) == [("attempt", before)]
    assert to_adopt(found, start_of(TODAY) + timedelta(minutes=60)) == [
        ("attempt", before),
        ("instance_history", yesterday),
        ("event", yesterday),
    ]


def test_days_older_than_the_time_to_keep_are_dropped_instances_first() -> None:
    known = {"event": days(-9, 0), "instance_history": days(-9, 0)}
    history = HistoryDays(NOW, known, start_of(TODAY))
    oldest, second = TODAY - timedelta(days=9), TODAY - timedelta(days=8)
    assert to_drop(history, WEEK) == [
        ("instance_history", oldest),
        ("event", oldest),
        ("instance_history", second),
        ("event", second),
    ]


def test_a_day_that_is_not_folded_is_not_dropped() -> None:
    known = {"instance_history": days(-9, 0)}
    assert to_drop(HistoryDays(NOW, known), WEEK) == []
    assert to_drop(HistoryDays(NOW, known, start_of(TODAY - timedelta(days=8))), WEEK) == [
        ("instance_history", TODAY - timedelta(days=9))
    ]


def folded() -> HistoryDays:
    return HistoryDays(NOW, {"instance_history": days(-9, 0)}, start_of(TODAY))


def test_without_times_of_their_own_no_day_is_read() -> None:
    assert to_clear(folded(), WEEK, []) == []


def test_a_shorter_time_clears_the_days_between_it_and_the_time_of_the_process() -> None:
    cleared = to_clear(folded(), WEEK, [OwnTimes(1, 0, timedelta(days=2)), OwnTimes(1, 5, timedelta(days=30))])
    assert [each.day for each in cleared] == days(-7, -3)
    assert {(each.jobs, each.tenants, each.apart) for each in cleared} == {((), (1,), (5,))}


def test_a_longer_time_clears_nothing_and_that_of_another_tenant_does_not_count() -> None:
    owns = [OwnTimes(1, 0, timedelta(days=30)), OwnTimes(2, 0, timedelta(days=3)), OwnTimes(1, 5, timedelta(days=3))]
    (*_, last) = to_clear(folded(), WEEK, owns)
    assert last == Clearing(TODAY - timedelta(days=4), (5,), (2,), ())


def test_a_day_that_is_not_folded_is_not_cleared() -> None:
    history = HistoryDays(NOW, {"instance_history": days(-9, 0)}, start_of(TODAY - timedelta(days=5)))
    cleared = to_clear(history, WEEK, [OwnTimes(1, 0, timedelta(days=1))])
    assert [each.day for each in cleared] == days(-7, -6)
    assert to_clear(HistoryDays(NOW, history.days), WEEK, [OwnTimes(1, 0, timedelta(days=1))]) == []


def test_an_old_day_is_looked_at_again_when_a_time_ends_or_after_a_while() -> None:
    day, hour = TODAY - timedelta(days=31), timedelta(hours=1)
    few, many = Look(NOW - hour, 5), Look(NOW - hour, 10_001)
    assert is_due_again(day, None, NOW, [])
    assert not is_due_again(day, few, NOW, [OwnTimes(1, 0, timedelta(days=29)), OwnTimes(1, 0, timedelta(days=31))])
    ends = [OwnTimes(1, 0, NOW - start_of(day + timedelta(days=1)))]
    assert is_due_again(day, many, NOW, ends), "a tenant has just stopped keeping it"
    assert is_due_again(day, few, NOW + timedelta(hours=23), [])
    assert not is_due_again(day, many, NOW + timedelta(hours=23), [])
    assert is_due_again(day, many, NOW + timedelta(days=7), [])
