import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai.core.calls import HTTP_TIMEOUT, HttpTarget, WorkerTarget
from horai.core.errors import Invalid
from horai.core.job import Definition, JobStatus, Priority, checked, document_of, target_document, with_instants
from horai.core.retry import Jitter, RetryPolicy
from horai.core.timing import Timing
from horai.time.schedule import CronSchedule, EverySchedule

HTTP = {"type": "http", "url": "https://example.com/hook"}


def faults(**document: Any) -> dict[str, str]:
    with pytest.raises(Invalid) as raised:
        checked({"name": "coupons", **document})
    return {error.field: error.message for error in raised.value.errors}


def test_the_shortest_definition_is_a_worker_job_with_the_seeds_defaults():
    definition = checked({"name": "coupon_job", "cron": "0 */5 * * * ?"})

    assert definition == Definition(
        name="coupon_job",
        timing=Timing(CronSchedule("0 */5 * * * ?")),
        at=None,
        delay=None,
        target=WorkerTarget("coupon_job"),
        queue="default",
        priority=None,
        retry=RetryPolicy(5, timedelta(milliseconds=500), timedelta(seconds=300), Jitter.ADDITIVE),
        timeout=None,
        tags=(),
        status=JobStatus.ACTIVE,
    )
    assert definition.handler == "coupon_job"


def test_an_http_job_gives_up_after_five_seconds_unless_it_says_otherwise():
    assert checked({"name": "a", "target": HTTP}).timeout == HTTP_TIMEOUT == timedelta(seconds=5)
    assert checked({"name": "a", "target": HTTP, "timeout": "90s"}).timeout == timedelta(seconds=90)


def test_an_http_job_is_in_no_handlers_lane():
    definition = checked({"name": "a", "target": {**HTTP, "method": "PUT", "headers": {"X-A": "b"}}})

    assert definition.handler == ""
    assert definition.target == HttpTarget("https://example.com/hook", "PUT", {"X-A": "b"})


def test_every_fault_is_found_at_once_each_at_its_field():
    found = faults(
        name="no spaces",
        cron="61 * * * *",
        dst={"gap": "perhaps"},
        target={"type": "http", "url": "ftp://x", "method": "BREW", "headers": {"Host": "x"}, "handler": "h"},
        queue="-bad",
        priority="urgent",
        retry={"maxRetry": -1, "base": "soon", "cap": "later", "jitter": "much", "maxLost": -1},
        timeout="25h",
        tags=["ok", "a,b"],
    )

    assert set(found) == {
        "name", "cron", "dst", "target.url", "target.method", "target.headers", "target.handler", "queue", "priority",
        "retry.maxRetry", "retry.base", "retry.cap", "retry.jitter", "retry.maxLost", "timeout", "tags",
    }  # fmt: skip


def test_the_message_names_every_field_and_one_hint():
    with pytest.raises(Invalid) as raised:
        checked({"name": "42", "every": "0s"})

    assert "name: has only digits" in raised.value.detail
    assert "every: " in raised.value.detail
    assert raised.value.hint == "Add a letter: a job is found by its id or its name."


@pytest.mark.parametrize(
    ("first", "second"),
    [({"cron": "* * * * *"}, {"every": "5s"}), ({"every": "5s"}, {"delay": "1s"}), ({"at": "x"}, {"delay": "1s"})],
)
def test_a_job_has_one_kind_of_time(first: dict[str, str], second: dict[str, str]):
    found = faults(**first, **second)

    assert list(found) == list(second)
    assert f"cannot be combined with {next(iter(first))}" in found[next(iter(second))]


def test_C46_a_cron_that_never_fires_is_refused_with_its_reason():
    assert faults(cron="0 0 30 2 *")["cron"] == "cron has no next fire time"


@pytest.mark.parametrize(("field", "value"), [("dst", {"gap": "skip"}), ("dialect", "quartz")])
def test_cron_options_are_refused_without_a_cron(field: str, value: object):
    assert field in faults(every="5s", **{field: value})


def test_an_unknown_zone_is_refused():
    assert "Atlantis" in faults(cron="* * * * *", timezone="Sea/Atlantis")["timezone"]


@pytest.mark.parametrize("text", ["0s", "999ms", "11y", "5 s", ""])
def test_an_interval_is_at_least_a_second_and_a_duration(text: str):
    assert set(faults(every=text)) == {"every"}


@pytest.mark.parametrize("timeout", ["0s", "24h1ms"])
def test_a_timeout_lies_between_a_millisecond_and_a_day(timeout: str):
    assert set(faults(timeout=timeout)) == {"timeout"}
    assert set(faults(target=HTTP, timeout=timeout)) == {"timeout"}


@pytest.mark.parametrize("name", ["", "a" * 129, "_a", "a b", "a\n", "é", "a/b", "1", "007"])
def test_a_name_that_would_not_be_found_again_is_refused(name: str):
    assert "name" in faults(name=name)


@pytest.mark.parametrize("name", ["a", "7a", "a.b-c_d", "A" * 128])
def test_a_name_is_letters_digits_and_a_few_signs(name: str):
    assert checked({"name": name}).name == name


@pytest.mark.parametrize("field", ["url", "method", "headers", "batch"])
def test_a_worker_target_has_nothing_of_an_http_one(field: str):
    value = {"headers": {"A": "b"}, "batch": {"size": 2}}.get(field, "x")

    assert list(faults(target={"type": "worker", field: value})) == [f"target.{field}"]


def test_an_http_target_may_take_batches_of_2_to_1000_by_post():
    definition = checked({"name": "a", "target": {**HTTP, "batch": {"size": 100}}})

    assert definition.target == HttpTarget("https://example.com/hook", batch_size=100)
    assert target_document(definition.target)["batch"] == {"size": 100}
    assert "batch" not in target_document(HttpTarget("https://example.com/hook"))
    for size in (1, 1001):
        assert faults(target={**HTTP, "batch": {"size": size}}) == {"target.batch.size": "is not between 2 and 1000"}
    assert faults(target={**HTTP, "method": "PUT", "batch": {"size": 2}}) == {"target.batch": "needs the method POST"}


def test_an_http_target_needs_a_url():
    assert faults(target={"type": "http"}) == {"target.url": "is missing"}


def test_retry_bounds_are_part_of_the_definition():
    assert checked({"name": "a", "retry": {"maxRetry": 0}}).retry.max_retry == 0
    assert checked({"name": "a", "retry": {"maxRetry": 1000, "jitter": "full"}}).retry.jitter is Jitter.FULL
    assert set(faults(retry={"maxRetry": 1001})) == {"retry.maxRetry"}
    assert checked({"name": "a", "retry": {"maxLost": 0}}).retry.max_lost == 0
    assert set(faults(retry={"maxLost": 1001})) == {"retry.maxLost"}


@pytest.mark.parametrize("priority", ["core", "high", "normal", "low"])
def test_the_more_urgent_priority_is_the_smaller_number(priority: str):
    assert checked({"name": "a", "priority": priority}).priority is Priority[priority]
    assert sorted(Priority) == [Priority.core, Priority.high, Priority.normal, Priority.low]


WRITTEN: list[dict[str, Any]] = [
    {"name": "a"},
    {"name": "a", "cron": "0 9 * * 1", "timezone": "Asia/Shanghai", "dst": {"gap": "skip", "overlap": "both"}},
    {"name": "a", "every": "90s", "tags": ["x", "y"], "priority": "core", "queue": "q"},
    {"name": "a", "at": datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC), "target": {**HTTP, "headers": {"A": "b"}}},
    {
        "name": "a",
        "cron": "0 0 9 ? * MON#1",
        "dialect": "quartz",
        "calendar": ["2026-12-25", "12-24/01-02"],
        "startAt": datetime.fromisoformat("2026-01-02T05:04:05.678+02:00"),
        "endAt": datetime(2036, 1, 2, tzinfo=UTC),
        "jitter": "90s",
        "misfire": {"policy": "all", "maxCatchup": 7, "window": "6h"},
        "misfireAfter": "2m",
        "overlap": "queue",
    },
    {"name": "a", "every": "1h", "anchor": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), "timezone": "Asia/Tokyo"},
    {"name": "a", "every": "1h", "everyFrom": "finish", "calendar": ["12-25"], "misfire": "once", "overlap": "allow"},
    {"name": "a", "every": "1h", "misfire": "skip", "overlap": "replace"},
    {
        "name": "a",
        "delay": "5m",
        "timeout": "1m30s",
        "retry": {"maxRetry": 2, "base": "1s", "cap": "1m", "jitter": "none", "maxLost": 3},
    },
]


@pytest.mark.parametrize("written", WRITTEN)
def test_the_stored_form_spells_every_default_out_and_means_the_same(written: dict[str, Any]):
    definition = checked(written)

    stored = document_of(definition, written)

    assert json.loads(json.dumps(stored)) == stored
    again = with_instants(stored)
    assert checked(again) == definition
    assert document_of(checked(again), again) == document_of(definition, stored) == stored
    assert {"name", "target", "queue", "retry", "timeout", "tags"} <= stored.keys()
    assert ("priority" in stored) == ("priority" in written), "what the job does not state is its queue's to say"


def test_the_stored_form_keeps_what_was_written_and_puts_instants_into_utc():
    written = WRITTEN[-5]

    stored = document_of(checked(written), written)

    assert stored["startAt"] == "2026-01-02T03:04:05.678000+00:00"
    assert stored["timezone"] == "UTC"
    same = ("cron", "dialect", "calendar", "jitter", "misfire", "misfireAfter", "overlap")
    assert {field: stored[field] for field in same} == {field: written[field] for field in same}


def test_a_document_without_instants_is_read_as_it_is():
    document = {"name": "a", "cron": "* * * * *"}

    assert with_instants(document) is document
    assert with_instants({"at": "2026-01-02T03:04:05+00:00", "endAt": None}) == {
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "endAt": None,
    }


def test_a_job_stored_by_an_earlier_version_is_still_a_job():
    stored = {
        "name": "a",
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "misfire": "once",
        "overlap": "allow",
        "target": {"type": "worker", "handler": "a"},
        "queue": "default",
        "timeout": None,
        "tags": [],
    }

    assert checked(stored).timing == Timing()


def test_faults_of_time_are_found_together_with_all_others():
    found = faults(
        name="42",
        every="1h",
        everyFrom="later",
        overlap="never",
        jitter="2d",
        misfire={"policy": "once", "maxCatchup": 3},
        misfireAfter="1ms",
        calendar=["12-32"],
        timezone="Mars",
        startAt=datetime(2027, 1, 1, tzinfo=UTC),
        endAt=datetime(2026, 1, 1, tzinfo=UTC),
        dst={"gap": "skip"},
        queue="no queue",
    )

    assert set(found) == {
        "name", "everyFrom", "overlap", "jitter", "misfire", "misfireAfter", "calendar", "timezone", "endAt", "dst", "queue",
    }  # fmt: skip


def test_a_fixed_rate_is_kept_as_it_was_written():
    definition = checked({"name": "a", "every": "90s"})

    assert definition.timing.schedule == EverySchedule(timedelta(seconds=90))
    assert document_of(definition, {"every": "90s"})["every"] == "90s"
