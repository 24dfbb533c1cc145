"""The JetStream executor against a real server: what it sends, and what each answer means."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from handed_over import executor_of, message_to, stored
from http_calls import SECRET, code_of, in_loop
from nats_server import NatsServer, publisher

from horai.core.callbacks import verify
from horai.core.calls import NatsTarget
from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Succeeded
from horai.engine.executors.jetstream import IN_FLIGHT, jetstream_executors
from horai.engine.executors.nats_line import NatsLine

USERS = """
authorization { users = [
    { user: admin, password: secret }
    { user: horai, password: secret, permissions: { publish: ["allowed.>", "$JS.API.>"], subscribe: "_INBOX.>" } }
    { user: deaf, password: secret, permissions: { publish: ">", subscribe: "other.>" } }
] }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    started = NatsServer(tmp_path_factory.mktemp("nats") / "store").start()
    yield started
    started.kill()


def store_of(outcome: object) -> tuple[str, int]:
    """The stream and the sequence number of a success."""
    assert isinstance(outcome, Succeeded), outcome
    result = json.loads(outcome.output or "null")
    return result["stream"], result["sequence"]


@in_loop
async def test_a_stored_message_is_a_success_and_has_the_headers_of_an_http_call(server: NatsServer) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        await stream.add_stream(name="orders", subjects=["orders.>"])
        call = message_to("orders.paid", traceparent="00-abc-def-01", attempt=2, fence=3)
        assert store_of(await executor.run(call)) == ("orders", 1)
        (message,) = await stored(stream, "orders")
        headers, body = message.headers or {}, message.data or b""
        assert message.subject == "orders.paid"
        assert json.loads(body)["payload"] == {"card": "4111"}
        assert json.loads(body)["instanceId"] == "1"
        expected = {
            "Idempotency-Key": call.idempotency_key,
            "Nats-Msg-Id": call.idempotency_key,
            "Horai-Unit": "acme:publish:article:42",
            "Horai-Tenant": "acme",
            "Horai-Job": "publish",
            "Horai-Instance": "1",
            "Horai-Attempt": "2",
            "Horai-Fence": "3",
            "traceparent": "00-abc-def-01",
        }
        assert expected.items() <= headers.items()
        assert not {"Horai-Outcome-Token", "Accept-Encoding"} & headers.keys()
        assert verify(SECRET, headers, body, datetime.now(UTC))


@in_loop
async def test_a_message_that_is_sent_again_is_stored_once(server: NatsServer) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        await stream.add_stream(name="again", subjects=["again"])
        assert store_of(await executor.run(message_to("again"))) == ("again", 1)
        assert store_of(await executor.run(message_to("again", attempt=2, fence=2))) == ("again", 1)
        assert len(await stored(stream, "again")) == 1


@in_loop
async def test_the_first_message_of_an_instance_does_not_succeed_as_the_duplicate_of_another(
    server: NatsServer,
) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        await stream.add_stream(name="shared", subjects=["shared"])
        call = message_to("shared")
        await stream.publish("shared", b"of another Horai", headers={"Nats-Msg-Id": call.idempotency_key})
        outcome = await executor.run(call)
        assert isinstance(outcome, FailedUnrecoverable)
        assert outcome.code == "NATS_ID_TAKEN"


@in_loop
async def test_a_reported_message_is_accepted_with_its_token_and_sent_again_by_a_retry(server: NatsServer) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        await stream.add_stream(name="reported", subjects=["reported"])
        for fence in (1, 2):
            call = message_to("reported", is_reported=True, fence=fence, timeout=timedelta(seconds=30))
            outcome = await executor.run(call)
            assert isinstance(outcome, Accepted)
            assert timedelta(seconds=15) < outcome.remaining <= timedelta(seconds=30)
        first, second = [message.headers or {} for message in await stored(stream, "reported")]
        assert first["Idempotency-Key"] == second["Idempotency-Key"]
        assert first["Horai-Outcome-Token"] != second["Horai-Outcome-Token"]


@in_loop
async def test_a_subject_without_a_stream_is_tried_again(server: NatsServer) -> None:
    async with executor_of(server.url) as executor:
        outcome = await executor.run(message_to("nowhere"))
        assert isinstance(outcome, FailedRetryable)
        assert (outcome.code, "nowhere" in outcome.message) == ("NATS_NO_STREAM", True)


@in_loop
async def test_a_full_stream_is_tried_again(server: NatsServer) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        await stream.add_stream(name="full", subjects=["full"], max_msgs=1, discard="new")
        assert store_of(await executor.run(message_to("full"))) == ("full", 1)
        outcome = await executor.run(message_to("full", instance_id=2, slot=1))
        assert isinstance(outcome, FailedRetryable)
        assert outcome.code == "NATS_STREAM_FULL"


@in_loop
async def test_a_message_that_is_too_large_is_given_up_and_breaks_no_connection(server: NatsServer) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        await stream.add_stream(name="large", subjects=["large"], max_msg_size=2_000)
        for size in (
            2_000,
            1_048_576 - 200,
            2_000_000,
        ):  # over the stream's limit, the server's with headers, and by far
            outcome = await executor.run(message_to("large", payload=json.dumps("x" * size)))
            assert isinstance(outcome, FailedUnrecoverable)
            assert outcome.code == "NATS_TOO_LARGE"
        line = executor._line  # pyright: ignore[reportPrivateUsage]
        assert line is not None
        assert line.is_open


@in_loop
async def test_wrong_credentials_are_tried_again_and_a_forbidden_subject_is_not(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "store", USERS).start()
    try:
        async with publisher(server, user="admin:secret") as stream:
            await stream.add_stream(name="all", subjects=["allowed.>", "forbidden.>"])
        urls = {user: server.url.replace("//", f"//{user}:secret@") for user in ("horai", "deaf")}
        async with executor_of(server.url) as executor:
            outcome = await executor.run(message_to("allowed.a"))
            assert isinstance(outcome, FailedRetryable)
            assert (outcome.code, "secret" in outcome.message) == ("NATS_UNAUTHENTICATED", False)
        async with executor_of(urls["horai"]) as executor:
            allowed, forbidden = await asyncio.gather(
                executor.run(message_to("allowed.a")), executor.run(message_to("forbidden.a", slot=1))
            )
            assert store_of(allowed)[0] == "all"
            assert isinstance(forbidden, FailedUnrecoverable)
            assert forbidden.code == "NATS_DENIED"
        async with executor_of(urls["deaf"]) as executor:
            outcome = await executor.run(message_to("allowed.a", slot=2))
            assert isinstance(outcome, FailedRetryable)
            assert code_of(outcome) in {"NATS_DENIED", "TIMEOUT"}
    finally:
        server.kill()


@in_loop
async def test_a_broker_that_was_away_is_used_again_over_a_new_connection(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "store").start()
    try:
        async with executor_of(server.url) as executor:
            async with publisher(server) as stream:
                await stream.add_stream(name="back", subjects=["back"])
            assert store_of(await executor.run(message_to("back"))) == ("back", 1)
            server.kill()
            assert code_of(await executor.run(message_to("back", slot=1))) == "CONNECTION"
            server.start()
            assert store_of(await executor.run(message_to("back", slot=1, fence=2))) == ("back", 2)
    finally:
        server.kill()


@in_loop
async def test_a_server_that_refuses_connections_does_not_keep_others_of_the_cluster_from_being_used(
    server: NatsServer,
) -> None:
    async with publisher(server) as stream:
        await stream.add_stream(name="list", subjects=["list"])
        urls = ",".join(["nats://127.0.0.1:9"] * 9 + [server.url])
        async with executor_of(urls) as executor:
            assert store_of(await executor.run(message_to("list", timeout=timedelta(minutes=1)))) == ("list", 1)
        async with executor_of("nats://127.0.0.1:9") as executor:
            assert code_of(await executor.run(message_to("list", timeout=timedelta(minutes=1)))) == "CONNECTION"


@in_loop
async def test_the_loss_of_the_connection_ends_every_message_that_waits_for_its_answer(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "store").start()
    try:
        async with publisher(server) as stream:
            heard = asyncio.Event()

            async def hear(_: object) -> None:
                heard.set()

            await stream._nc.subscribe("silent", cb=hear)  # pyright: ignore[reportPrivateUsage]
            async with executor_of(server.url) as executor:
                timeout = timedelta(minutes=5)
                calls = [message_to("silent", slot=slot, timeout=timeout) for slot in range(10)]
                running = [asyncio.create_task(executor.run(call)) for call in calls]
                await heard.wait()
                server.kill()
                outcomes = await asyncio.wait_for(asyncio.gather(*running), 30)
                assert {code_of(outcome) for outcome in outcomes} == {"CONNECTION"}
                server.start()  # the other client waits for it
    finally:
        server.kill()


@in_loop
async def test_a_message_without_an_answer_ends_at_its_deadline_and_a_cancelled_one_at_once(server: NatsServer) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        heard = asyncio.Event()

        async def hear(_: object) -> None:
            heard.set()

        await stream._nc.subscribe("mute", cb=hear)  # pyright: ignore[reportPrivateUsage]
        await stream._nc.flush()  # pyright: ignore[reportPrivateUsage]
        assert code_of(await executor.run(message_to("mute", timeout=timedelta(milliseconds=100)))) == "TIMEOUT"
        heard.clear()
        running = asyncio.create_task(executor.run(message_to("mute", slot=1, timeout=timedelta(minutes=5))))
        await heard.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        line = executor._line  # pyright: ignore[reportPrivateUsage]
        assert isinstance(line, NatsLine)
        assert line._waiting == {}  # pyright: ignore[reportPrivateUsage]


@in_loop
async def test_a_claim_that_was_lost_and_a_call_without_a_secret_are_not_sent(server: NatsServer) -> None:
    async with publisher(server) as stream:
        await stream.add_stream(name="held", subjects=["held"])
        async with executor_of(server.url, is_held=lambda _: False) as executor:
            assert await executor.run(message_to("held")) == NotSent()
        async with executor_of(server.url) as executor:
            assert isinstance(await executor.run(message_to("held", secrets=())), NotSent)
        assert await stored(stream, "held") == []


@in_loop
async def test_many_messages_share_one_connection_and_only_a_bounded_number_waits_for_answers(
    server: NatsServer,
) -> None:
    async with publisher(server) as stream, executor_of(server.url) as executor:
        await stream.add_stream(name="many", subjects=["many"])
        most = 0

        def look(*_: object) -> None:
            nonlocal most
            most = max(most, executor._bulkhead.in_flight)  # pyright: ignore[reportPrivateUsage]

        executor.on_end = look
        outcomes = await asyncio.gather(*(executor.run(message_to("many", slot=slot)) for slot in range(1_000)))
        assert sorted(store_of(outcome)[1] for outcome in outcomes) == list(range(1, 1_001))
        assert most <= IN_FLIGHT
        line = executor._line  # pyright: ignore[reportPrivateUsage]
        assert line is not None
        assert await executor.run(message_to("many", slot=0, fence=2)) == outcomes[0]
        assert executor._line is line  # pyright: ignore[reportPrivateUsage]


def test_brokers_are_not_dialled_and_nats_is_not_imported_before_the_first_message() -> None:
    code = """
import sys
from horai.engine.executors.jetstream import jetstream_executors
made = jetstream_executors({"main": "nats://127.0.0.1:9", "bus": "kafka://127.0.0.1:9"}, 10, lambda _: True)
assert list(made) == ["nats:main"], made
assert "nats" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_node_without_the_package_has_no_executor_for_its_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    assert jetstream_executors({"main": "nats://127.0.0.1:9"}, 10, lambda _: True) == {}


@in_loop
async def test_a_call_of_another_broker_is_refused(server: NatsServer) -> None:
    async with executor_of(server.url) as executor:
        outcome = await executor.run(message_to("a")._replace(target=NatsTarget("other", "a")))
        assert code_of(outcome) == "INVALID_TARGET"
