"""Batches of the HTTP executor over real HTTP: one request, many instances, an outcome for each."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from http_calls import LOOPBACK, SECRET, call_to, code_of, executor, in_loop
from receiver import DROP, HANG, HOLD, Answer, Receiver

from horai.core.callbacks import ANSWER_LIMIT, verify
from horai.core.calls import Call, HttpTarget
from horai.core.http_batches import PAYLOADS_LIMIT
from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Succeeded
from horai.core.outcome_tokens import read_outcome_token
from horai.engine.executors.http import HttpExecutor


def calls_to(receiver: Receiver, count: int, size: int = 100, **changes: Any) -> list[Call]:
    target = HttpTarget(receiver.url("/hook"), batch_size=size)
    return [
        call_to(receiver.url("/hook"), instance_id=number, slot=-number, fence=number + 6, target=target, **changes)
        for number in range(1, count + 1)
    ]


async def run(http: HttpExecutor, calls: list[Call]) -> list[Outcome | Accepted]:
    return await asyncio.gather(*(http.run(call) for call in calls))


def items(*said: dict[str, object]) -> Answer:
    return Answer(json={"items": list(said)})


def done(*numbers: int) -> list[dict[str, object]]:
    return [{"instanceId": str(number), "result": "SUCCESS"} for number in numbers]


@in_loop
async def test_calls_that_begin_together_are_one_signed_request_with_an_item_for_each():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", items({"instanceId": "1", "output": {"n": 1}}, *done(3, 2)))
        outcomes = await run(http, calls_to(receiver, 3))

    (hit,) = receiver.hits
    assert outcomes == [Succeeded('{"n": 1}'), Succeeded(), Succeeded()]
    assert hit.headers["horai-batch"] == "3"
    assert verify(SECRET, hit.headers, hit.body, datetime.now(UTC))
    first = hit.json["items"][0]
    token = read_outcome_token(first.pop("outcomeToken"))
    assert token is not None
    assert (token.token.instance_id, token.token.attempt, token.token.fence) == (1, 1, 7)
    assert first == {
        "fence": "7",
        "idempotencyKey": "7:1767323045000:1",
        "unit": "acme:publish:article:42",
        "job": "publish",
        "jobId": "7",
        "instanceId": "1",
        "key": "article:42",
        "fireTime": "2026-01-02T03:04:05.000Z",
        "executeTime": "2026-01-02T03:04:05.000Z",
        "attempt": 1,
        "payload": {"card": "4111"},
    }


@in_loop
async def test_items_fail_succeed_and_are_accepted_one_by_one():
    said = items(
        {"instanceId": "1", "result": "FAIL_RETRYABLE", "message": "busy"},
        {"instanceId": "2", "result": "FAIL_UNRECOVERABLE", "message": "gone", "tags": ["vip"]},
        {"instanceId": "3", "result": "ACCEPTED"},
        {"instanceId": 4},
    )
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", said)
        first, second, third, fourth = await run(http, calls_to(receiver, 4))

    assert first == FailedRetryable("RESULT_RETRYABLE", "busy")
    assert second == FailedUnrecoverable("RESULT_UNRECOVERABLE", "gone", ("vip",))
    assert isinstance(third, Accepted)
    assert fourth == Succeeded()


@pytest.mark.parametrize(
    "answer",
    [
        items(*done(1, 99), "no item", {"instanceId": "1", "result": "FAIL_RETRYABLE"}),  # pyright: ignore[reportArgumentType]
        items(*done(1), {"instanceId": "2", "result": "SUCCESS", "fence": "3"}),
    ],
)
@in_loop
async def test_an_instance_without_an_item_of_its_attempt_fails_retryably(answer: Answer):
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", answer)
        first, second = await run(http, calls_to(receiver, 2))

    assert first == Succeeded()
    assert isinstance(second, FailedRetryable)
    assert second.code == "ITEM_MISSING"


@pytest.mark.parametrize("answer", [Answer(204), Answer(body=b"fine"), Answer(json=[1]), Answer(json={"items": 3})])
@in_loop
async def test_an_answer_without_items_is_no_success(answer: Answer):
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", answer)
        outcomes = await run(http, calls_to(receiver, 2))

    assert [code_of(outcome) for outcome in outcomes] == ["ITEM_MISSING"] * 2


@in_loop
async def test_after_a_202_an_instance_without_an_item_is_accepted():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", Answer(202, json={"items": done(1)}))
        first, second = await run(http, calls_to(receiver, 2))

    assert first == Succeeded()
    assert isinstance(second, Accepted)


@pytest.mark.parametrize(
    ("answer", "code", "is_retried"),
    [
        (Answer(503), "HTTP_503", True),
        (Answer(404), "HTTP_404", False),
        (Answer(body=b'{"items": [', headers={"Content-Type": "application/json"}), "ANSWER_UNREADABLE", False),
        (Answer(json={"items": done(1, 2), "x": "x" * ANSWER_LIMIT}), "ANSWER_UNREADABLE", False),
        (DROP, "CONNECTION", True),
        (HANG, "TIMEOUT", True),
    ],
)
@in_loop
async def test_a_failed_request_fails_each_attempt_as_a_single_call_would(answer: Answer, code: str, is_retried: bool):
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", answer)
        outcomes = await run(http, calls_to(receiver, 2, timeout=timedelta(seconds=1 if answer is HANG else 5)))

    assert [code_of(outcome) for outcome in outcomes] == [code] * 2
    assert {isinstance(outcome, FailedRetryable) for outcome in outcomes} == {is_retried}
    assert len(receiver.hits) == 1


@in_loop
async def test_a_batch_has_at_most_its_size_and_a_limit_of_payloads():
    large = json.dumps("x" * (PAYLOADS_LIMIT // 2))
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", items(*done(1, 2, 3, 4, 5)))
        assert await run(http, calls_to(receiver, 5, size=2)) == [Succeeded()] * 5
        assert sorted(len(hit.json["items"]) for hit in receiver.hits) == [1, 2, 2]

        receiver.hits.clear()
        assert await run(http, calls_to(receiver, 3, payload=large)) == [Succeeded()] * 3
        assert [len(hit.json["items"]) for hit in receiver.hits] == [1, 1, 1]


@in_loop
async def test_jobs_reaches_and_secrets_are_not_mixed_in_a_batch():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", items(*done(1, 2, 3)))
        first, second, third = calls_to(receiver, 3)
        other = "whsec_b3RoZXI="
        calls = [first, second._replace(job_id=8), third._replace(secrets=(other,))]
        assert await run(http, calls) == [Succeeded()] * 3

    assert [hit.headers["horai-batch"] for hit in receiver.hits] == ["1", "1", "1"]


@in_loop
async def test_a_cancelled_item_leaves_the_others_of_its_batch_and_the_last_one_breaks_the_request_off():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", HOLD, items(*done(1, 2)))
        first, second = (asyncio.create_task(http.run(call)) for call in calls_to(receiver, 2))
        await receiver.wait_for(1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert http.in_flight == 1
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        while http.in_flight:
            await asyncio.sleep(0)

        before, left = (asyncio.create_task(http.run(call)) for call in calls_to(receiver, 2))
        await asyncio.sleep(0)
        before.cancel()
        assert await left == Succeeded()
        assert [item["instanceId"] for item in receiver.hits[-1].json["items"]] == ["2"]


@in_loop
async def test_an_item_that_no_longer_belongs_to_the_node_is_left_out():
    async with Receiver() as receiver, executor(is_held=lambda call: call.instance_id != 2) as http:
        receiver.on("/hook", items(*done(1, 2, 3)))
        assert await run(http, calls_to(receiver, 3)) == [Succeeded(), NotSent(), Succeeded()]
        assert [item["instanceId"] for item in receiver.hits[0].json["items"]] == ["1", "3"]


@in_loop
async def test_a_batch_takes_one_place_of_its_host_and_is_turned_away_as_a_whole():
    async with Receiver() as receiver, executor(per_host=1, waiting_per_host=0) as http:
        receiver.on("/hook", HOLD)
        running = [asyncio.create_task(http.run(call)) for call in calls_to(receiver, 2)]
        await receiver.wait_for(1)
        turned_away = await run(http, calls_to(receiver, 3))
        receiver.let_go()
        await asyncio.gather(*running)

    assert all(isinstance(outcome, NotSent) and outcome.delay for outcome in turned_away)


@in_loop
async def test_closing_turns_away_a_batch_that_was_not_sent():
    async with Receiver() as receiver:
        http = HttpExecutor(LOOPBACK)
        await http.open()
        calls = [asyncio.create_task(http.run(call)) for call in calls_to(receiver, 2)]
        await asyncio.sleep(0)
        await http.close()

        assert await asyncio.gather(*calls) == [NotSent(), NotSent()]
        assert receiver.hits == []
