"""Pure decisions of alerts: fields of rules, deadlines of days, groups, repeats and silences."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai.core.errors import Invalid
from horai.features.alerts.grouping import OpenAlert, RuleInForce, Silence, plan_sends
from horai.features.alerts.rules import DeadlineWindow, RuleKind, checked_rule, is_worse, next_deadline, window_of
from horai.time.work_calendar import WorkCalendar

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
RULE = RuleInForce(1, 1, "dead", "INSTANCE_DEAD", {}, ("ops",), timedelta(seconds=30), timedelta(hours=4), NOW)


def alert(number: int, **changes: Any) -> OpenAlert:
    made = OpenAlert(number, 1, str(number), "publish", ("shop",), {}, NOW, NOW, None, None, None)
    return replace(made, **changes)


def sent(alerts: list[OpenAlert], now: datetime, *silences: Silence) -> list[tuple[str, list[int]]]:
    plan = plan_sends([RULE], alerts, silences, now)
    return [(each.kind, [one.id for one in each.alerts]) for each in plan.notifications]


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        ("INSTANCE_DEAD", {"queue": "q"}, "queue"),
        ("NOT_SUCCESS_BY", {"job": "a"}, "by"),
        ("NOT_SUCCESS_BY", {"by": "06:00"}, "job"),
        ("NOT_SUCCESS_BY", {"job": "a", "by": "6:00"}, "by"),
        ("NOT_SUCCESS_BY", {"job": "a", "by": "24:00"}, "by"),
        ("NOT_SUCCESS_BY", {"job": "a", "by": "06:00", "timezone": "Mars/Base"}, "timezone"),
        ("NOT_SUCCESS_BY", {"job": "a", "by": "06:00", "weekdays": ["MONDAY"]}, "weekdays"),
        ("NOT_SUCCESS_BY", {"job": "a", "by": "06:00", "weekdays": []}, "weekdays"),
        ("JOB_LATE", {"after": "soon"}, "after"),
        ("MODE_ENTERED", {"modes": ["NORMAL"]}, "modes"),
    ],
)
def test_a_wrong_field_of_a_rule_is_named(kind: str, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        checked_rule(RuleKind(kind), fields, "30s", "4h")
    assert [each.field for each in refused.value.errors] == [field]


@pytest.mark.parametrize(("group", "repeat", "field"), [("2h", "4h", "groupWait"), ("0s", "59s", "repeatEvery")])
def test_a_group_lasts_an_hour_at_most_and_a_repeat_takes_a_minute_at_least(
    group: str, repeat: str, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        checked_rule(RuleKind.INSTANCE_DEAD, {}, group, repeat)
    assert [each.field for each in refused.value.errors] == [field]


WORKDAYS = {"by": "06:00", "timezone": "Asia/Shanghai", "weekdays": ["MON", "TUE", "WED", "THU", "FRI"]}


def window(fields: dict[str, Any], now: datetime, calendar: WorkCalendar | None = None) -> DeadlineWindow:
    found = window_of(fields, calendar, now)
    assert found is not None
    return found


def test_the_window_of_a_deadline_begins_a_day_before_it_in_its_own_zone() -> None:
    before = datetime(2026, 11, 16, 21, 59, tzinfo=UTC)  # Tuesday, 05:59 in Shanghai
    assert window(WORKDAYS, before).deadline == datetime(2026, 11, 15, 22, tzinfo=UTC)
    at = datetime(2026, 11, 16, 22, tzinfo=UTC)
    found = window(WORKDAYS, at)
    assert (found.begin, found.deadline) == (datetime(2026, 11, 15, 22, tzinfo=UTC), at)
    assert next_deadline(WORKDAYS, None, at) == datetime(2026, 11, 17, 22, tzinfo=UTC)


def test_a_weekend_has_no_deadline_and_monday_counts_from_sunday() -> None:
    saturday = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert window(WORKDAYS, saturday).deadline == datetime(2026, 11, 19, 22, tzinfo=UTC)
    assert next_deadline(WORKDAYS, None, saturday) == datetime(2026, 11, 22, 22, tzinfo=UTC)
    assert window(WORKDAYS, datetime(2026, 11, 23, tzinfo=UTC)).begin == datetime(2026, 11, 21, 22, tzinfo=UTC)


def test_days_off_of_a_calendar_have_no_deadline_and_make_up_days_have_one() -> None:
    everyday = {**WORKDAYS, "weekdays": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]}
    closed = WorkCalendar(holidays=("2026-11-16/2026-12-31",), workdays=("2026-11-22",))
    now = datetime(2026, 11, 18, 12, tzinfo=UTC)
    assert window(everyday, now, closed).deadline == datetime(2026, 11, 12, 22, tzinfo=UTC), "Friday the 13th"
    assert next_deadline(everyday, closed, now) == datetime(2026, 11, 21, 22, tzinfo=UTC), "Sunday the 22nd"
    assert next_deadline(WORKDAYS, closed, now) == datetime(2026, 12, 31, 22, tzinfo=UTC), "Friday, 1 January"
    never = WorkCalendar(weekend=tuple(range(7)))
    assert (window_of(everyday, never, now), next_deadline(everyday, never, now)) == (None, None)


def test_a_deadline_keeps_its_time_of_day_when_the_clocks_change() -> None:
    fields = {"by": "06:00", "timezone": "Europe/Berlin", "weekdays": ["SUN", "MON"]}
    found = window(fields, datetime(2026, 10, 25, 12, tzinfo=UTC))
    assert (found.begin, found.deadline) == (
        datetime(2026, 10, 24, 4, tzinfo=UTC),
        datetime(2026, 10, 25, 5, tzinfo=UTC),
    )


def test_alerts_of_a_group_are_one_message_when_the_first_has_waited() -> None:
    alerts = [alert(1), alert(2, fired_at=NOW + timedelta(seconds=29))]
    assert sent(alerts, NOW + timedelta(seconds=29)) == []
    assert plan_sends([RULE], alerts, (), NOW).again_at == NOW + timedelta(seconds=30)
    assert sent(alerts, NOW + timedelta(seconds=30)) == [("FIRING", [1, 2])]


def test_alerts_that_still_fire_are_repeated_and_resolved_ones_are_told_once() -> None:
    told = alert(1, notified_at=NOW)
    assert sent([told], NOW + timedelta(hours=3, minutes=59)) == []
    assert sent([told], NOW + timedelta(hours=4)) == [("REPEATED", [1])]
    over = alert(2, notified_at=NOW, resolved_at=NOW)
    assert sent([told, over], NOW + timedelta(seconds=30)) == [("RESOLVED", [2])]


def test_an_alert_that_ends_before_it_was_told_is_told_and_then_resolved() -> None:
    short = alert(1, resolved_at=NOW + timedelta(seconds=1))
    plan = plan_sends([RULE], [short], (), NOW + timedelta(seconds=30))
    assert [each.kind for each in plan.notifications] == ["FIRING"]
    assert plan.again_at == NOW + timedelta(seconds=30)


SILENCE = Silence(7, 1, None, None, None, NOW, NOW + timedelta(hours=1))


@pytest.mark.parametrize(
    ("changes", "is_held"),
    [
        ({}, True),
        ({"rule": "dead"}, True),
        ({"rule": "other"}, False),
        ({"job": "publish", "tag": "shop"}, True),
        ({"job": "other"}, False),
        ({"tag": "other"}, False),
        ({"tenant_id": 2}, False),
        ({"starts_at": NOW + timedelta(minutes=2)}, False),
        ({"ends_at": NOW + timedelta(minutes=1)}, False),
    ],
)
def test_a_silence_holds_what_matches_all_its_fields_in_its_time(changes: dict[str, Any], is_held: bool) -> None:
    silence = replace(SILENCE, **changes)
    now = NOW + timedelta(minutes=1)
    assert (sent([alert(1)], now, silence) == []) == is_held
    assert (plan_sends([RULE], [alert(1)], [silence], now).silenced == {1: 7}) == is_held


def test_an_alert_is_sent_when_its_silence_ends_and_dropped_if_it_ended_before() -> None:
    held = alert(1, silenced_by=7)
    plan = plan_sends([RULE], [held], [SILENCE], NOW)
    assert (plan.notifications, plan.again_at) == ([], SILENCE.ends_at)
    assert sent([held], SILENCE.ends_at, SILENCE) == [("FIRING", [1])]
    over = replace(held, resolved_at=NOW)
    for silences in ([SILENCE], []):
        plan = plan_sends([RULE], [over], silences, NOW + timedelta(minutes=1))
        assert (plan.notifications, plan.closed) == ([], [1])


def test_an_acknowledged_alert_is_not_repeated_and_its_end_is_told() -> None:
    later = NOW + timedelta(hours=9)
    known = alert(1, notified_at=NOW, acknowledged_at=NOW)
    assert sent([known], later) == []
    assert sent([known, alert(2, notified_at=NOW)], later) == [("REPEATED", [2])]
    assert sent([alert(1, notified_at=NOW, acknowledged_at=NOW, resolved_at=NOW)], later) == [("RESOLVED", [1])]
    assert sent([alert(1, acknowledged_at=NOW)], later) == [("FIRING", [1])], (
        "a first message that waits for its group is sent"
    )


def test_an_acknowledged_alert_that_gets_worse_is_told_at_once_and_is_not_acknowledged_any_more() -> None:
    rule = replace(RULE, kind="QUEUE_WAIT")
    known = alert(1, notified_at=NOW, acknowledged_at=NOW, data={"instances": 9}, acknowledged_data={"instances": 5})
    assert plan_sends([rule], [known], (), NOW).notifications == []
    plan = plan_sends([rule], [replace(known, data={"instances": 10})], (), NOW)
    assert ([each.kind for each in plan.notifications], plan.worse) == (["REPEATED"], [1])
    assert plan_sends([rule], [replace(known, acknowledged_data=None)], (), NOW).worse == [], (
        "nothing to compare with yet"
    )


@pytest.mark.parametrize(
    ("kind", "before", "now", "worse"),
    [
        ("RUN_BLOCKED", {"dead": ["a"]}, {"dead": ["a", "b"]}, True),
        ("RUN_BLOCKED", {"dead": ["a", "b"]}, {"dead": ["a"]}, False),
        ("MODE_ENTERED", {"level": 2}, {"level": 3}, True),
        ("JOB_LATE", {"instances": 5}, {"instances": 9}, False),
        ("JOB_LATE", {"instances": 5}, {"instances": 10}, True),
        ("BUDGET_BURN", {"burnRate": 10.5}, {"burnRate": 21.0}, True),
        ("RECONCILE_DRIFT", {"missing": 0, "surplus": 0, "faulty": 0}, {"missing": 0, "surplus": 1, "faulty": 0}, True),
        ("RECONCILE_DRIFT", {"missing": 0, "surplus": 0, "faulty": 0}, {"missing": 0, "surplus": 0, "faulty": 0}, False),
        ("HEARTBEAT_MISSING", {"lastAt": None}, {"lastAt": "2026"}, False),
    ],
)  # fmt: skip
def test_a_condition_is_worse_by_the_figure_of_its_kind(
    kind: str, before: dict[str, Any], now: dict[str, Any], worse: bool
) -> None:
    assert is_worse(RuleKind(kind), before, now) is worse
