"""Jobs that are handed over to a message queue: from the definition to the message, its settlement and its refusals."""

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import harness
import pytest
from databases import Superuser
from handed_over import stored
from harness import Client
from nats.aio.msg import Msg
from nats_server import NatsServer, publisher

JOBS = "/api/v1/jobs"
RETRY = {"maxRetry": 1000, "base": "20ms", "cap": "50ms", "jitter": "none"}
BROKERS = {"main": "nats://127.0.0.1:9", "bus": "kafka://127.0.0.1:9"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    started = NatsServer(tmp_path_factory.mktemp("nats") / "store").start()
    yield started
    started.kill()


def job(name: str, subject: str, **target: Any) -> dict[str, Any]:
    return {"name": name, "target": {"type": "nats", "broker": "main", "subject": subject, **target}, "retry": RETRY}


async def put(api: Client, name: str, key: str = "k", **fields: Any) -> str:
    made = await api("PUT", f"{JOBS}/{name}/instances/{key}", fields)
    assert made.status == 201, made.json
    return made.json["instance"]["id"]


async def test_F10_an_instance_is_published_to_jetstream_and_settled_when_the_stream_acknowledges_it(
    url: str, connection: Superuser, server: NatsServer
) -> None:
    async with harness.node(url, brokers={"main": server.url}) as api, publisher(server) as stream:
        await stream.add_stream(name="orders", subjects=["orders.>"])
        assert (await api("POST", JOBS, job("orders", "orders.paid"))).status == 201
        items = [{"key": f"k{number}", "payload": {"number": number}} for number in range(100)]
        created = await api("POST", f"{JOBS}/orders/instances/batch", {"items": items})
        ids = [each["instanceId"] for each in created.json["items"]]
        ended = [await api.until_state(each, "SUCCESS", "DEAD") for each in ids]
        messages = await stored(stream, "orders")

        # Each instance is stored once, with its payload and its idempotency key, and its result names the message.
        keys = {row[0] for row in await connection.fetch("select idem_key from horai.job_instance")}
        assert sorted((message.headers or {})["Nats-Msg-Id"] for message in messages) == sorted(keys)
        by_sequence = {message.seq: json.loads(message.data or b"") for message in messages}
        for each in ended:
            assert (each["state"], each["result"]["stream"], each["attempt"]) == ("SUCCESS", "orders", 1)
            body = by_sequence[each["result"]["sequence"]]
            assert (body["instanceId"], body["payload"]) == (each["id"], each["payload"])

        # The message alone does not settle it, the acknowledgement does: here the test answers in place of a stream.
        heard: asyncio.Queue[Msg] = asyncio.Queue()
        await stream._nc.subscribe("slow", cb=heard.put)  # pyright: ignore[reportPrivateUsage]
        await stream._nc.flush()  # pyright: ignore[reportPrivateUsage]
        assert (await api("POST", JOBS, {**job("slow", "slow"), "timeout": "60s"})).status == 201
        instance = await put(api, "slow")
        message = await heard.get()
        assert (await api("GET", f"/api/v1/instances/{instance}")).json["state"] == "RUNNING"
        await message.respond(b'{"stream": "by hand", "seq": 7}')
        settled = await api.until_state(instance, "SUCCESS", "FAIL", "DEAD")
        assert (settled["state"], settled["result"]) == ("SUCCESS", {"stream": "by hand", "sequence": 7})


async def test_an_instance_waits_for_its_stream_and_counts_its_failures(url: str, server: NatsServer) -> None:
    async with harness.node(url, brokers={"main": server.url}) as api, publisher(server) as stream:
        assert (await api("POST", JOBS, job("later", "later"))).status == 201
        instance = await put(api, "later")
        failed = await api.until_state(instance, "FAIL")
        assert failed["errorCode"] == "NATS_NO_STREAM"
        await stream.add_stream(name="later", subjects=["later"])
        ended = await api.until_state(instance, "SUCCESS")
        assert ended["retryCount"] > 0
        assert len(await stored(stream, "later")) == 1


async def test_the_consumer_of_a_reported_message_settles_it_with_its_token(url: str, server: NatsServer) -> None:
    async with harness.node(url, brokers={"main": server.url}) as api, publisher(server) as stream:
        await stream.add_stream(name="work", subjects=["work"])
        asked = {**job("work", "work", settleOn="reported"), "timeout": "60s"}
        assert (await api("POST", JOBS, asked)).status == 201
        instance = await put(api, "work")
        subscription = await stream.pull_subscribe("work", durable="worker")
        (message,) = await subscription.fetch(1, timeout=20)
        headers = message.headers or {}
        assert (await api("GET", f"/api/v1/instances/{instance}")).json["state"] == "RUNNING"
        report = {"fence": int(headers["Horai-Fence"]), "result": "SUCCESS", "output": {"rows": 3}}
        path = f"/api/v1/instances/{headers['Horai-Instance']}/outcome"
        reported = await api("POST", path, report, Horai_Outcome_Token=headers["Horai-Outcome-Token"])
        assert reported.status == 200, reported.json
        assert (await api.until_state(instance, "SUCCESS"))["result"] == {"rows": 3}


async def test_an_answer_does_not_revive_an_instance_that_was_cancelled_meanwhile(url: str, server: NatsServer) -> None:
    async with harness.node(url, brokers={"main": server.url}) as api, publisher(server) as stream:
        heard: asyncio.Queue[Msg] = asyncio.Queue()
        await stream._nc.subscribe("cancelled", cb=heard.put)  # pyright: ignore[reportPrivateUsage]
        await stream._nc.flush()  # pyright: ignore[reportPrivateUsage]
        assert (await api("POST", JOBS, {**job("cancelled", "cancelled"), "timeout": "60s"})).status == 201
        instance = await put(api, "cancelled")
        message = await heard.get()
        assert (await api("POST", f"/api/v1/instances/{instance}/cancel")).status == 200
        await message.respond(b'{"stream": "by hand", "seq": 7}')
        await put(api, "cancelled", "next")
        await (await heard.get()).respond(b'{"stream": "by hand", "seq": 8}')
        assert (await api("GET", f"/api/v1/instances/{instance}")).json["state"] == "CANCELLED"


async def test_a_job_that_is_changed_to_a_subject_is_handed_over_from_then_on(url: str, server: NatsServer) -> None:
    async with harness.node(url, brokers={"main": server.url}) as api, publisher(server) as stream:
        await stream.add_stream(name="moved", subjects=["moved"])
        target = {"type": "http", "url": f"{api.base}/healthz", "method": "GET"}
        assert (await api("POST", JOBS, {"name": "moved", "target": target})).status == 201
        wanted = job("moved", "moved")["target"]
        changed = await api("PATCH", f"{JOBS}/moved", {"target": wanted})
        assert changed.json["target"] == {**wanted, "settleOn": "stored"}
        ended = await api.until_state(await put(api, "moved"), "SUCCESS", "DEAD")
        assert ended["result"] == {"stream": "moved", "sequence": 1}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"subject": "orders.>"}, "target.subject"),
    ({"subject": "$JS.API.STREAM.DELETE.orders"}, "target.subject"),
    ({"subject": "a..b"}, "target.subject"),
    ({"subject": "x" * 256}, "target.subject"),
    ({"subject": None}, "target.subject"),
    ({"broker": None}, "target.broker"),
    ({"broker": "other"}, "target.broker"),
    ({"broker": "bus"}, "target.broker"),
    ({"settleOn": "sent"}, "target.settleOn"),
    ({"url": "https://example.com"}, "target.url"),
    ({"handler": "main"}, "target.handler"),
    ({"type": "http", "url": "https://example.com"}, "target.broker"),
    ({"type": "worker"}, "target.subject"),
]


async def test_a_target_that_cannot_be_handed_over_is_refused(url: str) -> None:
    async with harness.node(url, brokers=BROKERS) as api:
        for change, field in WRONG:
            wrong = job("wrong", "orders.paid")
            wrong["target"] |= change
            refused = await api("POST", JOBS, wrong)
            assert refused.status == 422, refused.json
            assert field in {error["field"] for error in refused.json["errors"]}, refused.json
            if field in {"target.subject", "target.broker"} and change.get("type") is None:
                assert refused.json["hint"], refused.json
        assert (await api("GET", f"{JOBS}/wrong")).status == 404


async def test_a_server_without_the_package_refuses_the_job_and_says_what_to_install(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    async with harness.node(url, brokers=BROKERS) as api:
        refused = await api("POST", JOBS, job("wrong", "orders.paid"))
        assert (refused.status, refused.json["errors"][0]["field"]) == (422, "target.type")
        assert "horai[nats]" in refused.json["hint"]


async def test_an_instance_whose_broker_no_node_has_waits_and_says_so(url: str) -> None:
    async with harness.node(url, brokers=BROKERS) as api:
        assert (await api("POST", JOBS, job("orders", "orders.paid"))).status == 201
    async with harness.node(url) as api:
        instance = await put(api, "orders")
        why = (await api("GET", f"/api/v1/instances/{instance}/why")).json
        assert "NATS broker main" in why["holds"][0]["detail"], why
        assert (await api("GET", f"/api/v1/instances/{instance}")).json["state"] == "INIT"
