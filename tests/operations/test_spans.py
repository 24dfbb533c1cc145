"""The spans of one process: their bounds, and the moment at which new instances are recorded."""

from datetime import UTC, datetime
from typing import Any

import pytest
from collector import Sent

from horai.core.calls import Call, WorkerTarget
from horai.core.job import Priority
from horai.core.outcome import SUCCESS, Complete, FailedRetryable
from horai.core.trace_context import InstanceTraces
from horai.db.claim_lanes import Lane
from horai.db.claims import Claim, Claimable, ClaimedRow
from horai.db.wakeups import HeldWakeups, Wakeups
from horai.operations import traces as module
from horai.operations.traces import LINKS, Traces, serving

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LANE = Lane(3, 1, "mail", Priority.low, "")
CALL = Call(7, 1, "job", "default", None, NOW, NOW, 1, 4, NOW, -1, None, WorkerTarget("job"), None)


def row(id_: int, fence: int = 4) -> ClaimedRow:
    return ClaimedRow(Claim(id_, 1, 1, fence, 2, 0, NOW), 3, NOW, -1, None, NOW, NOW, NOW, None, None)


def test_a_request_has_a_bounded_number_of_links_and_every_fire_has_one() -> None:
    sent = Sent()
    traces = Traces(InstanceTraces(b"c" * 16), sent.queue)
    request = traces.serve([])
    token = serving.set(request)
    traces.made(range(1, LINKS + 50))
    serving.reset(token)
    traces.served(request, "POST", "/api/v1/jobs/{job}/instances/batch", 200)

    *fires, served = sent.all()
    assert len(fires) == LINKS + 49
    assert {fire.links for fire in fires} == {(request.ids,)}
    assert served.links == tuple(fire.ids for fire in fires[:LINKS])


def test_the_queue_of_a_claim_is_on_its_attempt_and_forgotten_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES", 2)
    sent = Sent()
    traces = Traces(InstanceTraces(b"c" * 16), sent.queue)
    traces.claimed([row(5), row(6), row(7)], lambda _: LANE)  # the first one is forgotten for the third
    for id_ in (5, 7, 7):
        traces.attempted(traces.begin(CALL._replace(instance_id=id_), is_http=False), SUCCESS)

    attempts = [span for span in sent.all() if span.name == "horai.attempt"]
    named = [span.attributes.get("messaging.destination.name") for span in attempts]
    assert named == [None, "mail", None]


def test_a_failure_is_named_by_its_code_alone() -> None:
    sent = Sent()
    traces = Traces(InstanceTraces(b"c" * 16), sent.queue)
    traces.attempted(traces.begin(CALL, is_http=True), FailedRetryable("HTTP_500", "card-4111", traceback="card-4111"))
    traces.attempted(traces.begin(CALL, is_http=True), None)

    failed, stopped = sent.all()
    assert (failed.error, failed.attributes["error.type"]) == ("HTTP_500", "HTTP_500")
    assert stopped.error == "NODE_STOPPED"
    assert "card-4111" not in str(failed)


def test_a_trace_that_is_not_recorded_has_no_span() -> None:
    sent = Sent()
    traces = Traces(InstanceTraces(b"c" * 16, 0.0), sent.queue)
    traces.made([7])
    traces.claimed([row(7)], lambda _: LANE)
    begun = traces.begin(CALL, is_http=True)
    traces.called(begun.call, "POST", "shop", traces.now(), (200, None))
    traces.attempted(begun, SUCCESS)
    traces.settled([(row(7).held, Complete())], traces.now())
    traces.served(traces.serve([]), "GET", None, 200)

    assert sent.all() == []


def test_a_caller_does_not_have_more_recorded_than_the_ratio() -> None:
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    none, all_ = (Traces(InstanceTraces(b"c" * 16, ratio), Sent().queue) for ratio in (0.0, 1.0))

    assert not none.serve([traceparent]).ids.is_sampled
    assert all_.serve([traceparent]).ids.is_sampled
    assert not all_.serve([traceparent[:-1] + "0"]).ids.is_sampled


def test_fires_of_a_transaction_are_recorded_after_its_commit_and_not_without_it() -> None:
    made: list[int] = []
    wakeups = Wakeups()
    wakeups.on_made = made.extend
    committed, rolled_back = HeldWakeups(wakeups), HeldWakeups(wakeups)
    for held, id_ in ((committed, 1), (rolled_back, 2)):
        held.announce_new([Claimable(id_, 3, NOW)])
    assert made == []

    committed.release()
    committed.release()
    assert made == [1]


def test_log_lines_about_an_instance_name_its_trace_and_others_that_of_the_request() -> None:
    traces = Traces(InstanceTraces(b"c" * 16), Sent().queue)
    about: dict[str, Any] = {"event": "attempt failed", "instance": "7"}
    other: dict[str, Any] = {"event": "request failed", "instance": "no number"}
    alone: dict[str, Any] = {"event": "started"}
    traces.stamp(about)
    traces.stamp(alone)
    request = traces.serve([])
    token = serving.set(request)
    traces.stamp(other)
    serving.reset(token)

    assert about["trace_id"] == traces.trace_id(7)
    assert other["trace_id"] == request.ids.trace_text
    assert "trace_id" not in alone
