"""The choice of the days of history that are folded and dropped."""

from datetime import UTC, date, datetime, timedelta

from horai.features.retention.rules import HistoryDays, next_to_fold, start_of, to_drop

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
