"""Sinks end to end: real events, real receivers."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import harness
from harness import Client
from receiver import Answer, Hit, Receiver
from rows import until

from horai.db.pool import Platform

SINKS = "/api/v1/sinks"


async def job(api: Client, receiver: Receiver, name: str, *answers: Answer, **fields: Any) -> None:
    receiver.on(f"/{name}", *answers)
    body = {"name": name, "target": {"type": "http", "url": receiver.url(f"/{name}")}, **fields}
    made = await api("POST", "/api/v1/jobs", body)
    assert made.status == 201, made.json


async def sink(api: Client, receiver: Receiver, name: str, *answers: Answer, **fields: Any) -> None:
    receiver.on(f"/{name}", *(answers or (Answer(200),)))
    body = {"kind": "webhook", "url": receiver.url(f"/{name}"), **fields}
    made = await api("PUT", f"{SINKS}/{name}", body)
    assert made.status == 201, made.json


async def when(holds: Callable[[], bool]) -> None:
    """Return when the question is answered with yes."""

    async def asked() -> bool:
        return holds()

    await until(asked)


def events_at(receiver: Receiver, name: str) -> list[dict[str, Any]]:
    """The accepted events of a path, in the order of their arrival."""
    found: list[dict[str, Any]] = []
    for hit in receiver.hits:
        if hit.path.startswith(f"/{name}") and hit.status < 300:
            body = json.loads(hit.body)
            found += body if isinstance(body, list) else [body]
    return found


def types(receiver: Receiver, name: str) -> list[str]:
    return [event["type"] for event in events_at(receiver, name)]


async def test_F4_two_sinks_get_every_event_in_order_with_positions_of_their_own(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit")
        await sink(api, receiver, "monitoring", types=["horai.instance.done", "horai.instance.dead"], batch=50)
        retry = {"maxRetry": 1, "base": "10ms", "cap": "20ms", "jitter": "none"}
        await job(api, receiver, "clearing", Answer(503), Answer(200), retry=retry)
        await job(api, receiver, "broken", Answer(503), retry=retry)
        assert (await api("PUT", "/api/v1/jobs/clearing/instances/order-1", {})).status == 201
        assert (await api("PUT", "/api/v1/jobs/broken/instances/order-2", {})).status == 201
        await when(lambda: {"horai.instance.done", "horai.instance.dead"} <= {*types(receiver, "audit")})
        await when(lambda: {"horai.instance.done", "horai.instance.dead"} <= {*types(receiver, "monitoring")})
        of_key: defaultdict[str, list[str]] = defaultdict(list)
        for event in events_at(receiver, "audit"):
            if "key" in event["data"]:
                of_key[event["data"]["key"]].append(event["type"])
        assert of_key == {
            "order-1": ["horai.instance.failed", "horai.instance.done"],
            "order-2": ["horai.instance.failed", "horai.instance.dead"],
        }
        assert sorted(types(receiver, "monitoring")) == ["horai.instance.dead", "horai.instance.done"]
        done = next(event for event in events_at(receiver, "audit") if event["type"] == "horai.instance.done")
        assert (done["specversion"], done["source"]) == ("1.0", "/horai/tenants/default")
        assert (done["data"]["job"], done["data"]["state"], done["data"]["attempt"]) == ("clearing", "SUCCESS", 2)
        assert done["partitionkey"] == done["data"]["instanceId"]

        async def is_level() -> bool:
            shown = (await api("GET", SINKS)).json["items"]
            return [(each["behind"], each["lagSeconds"]) for each in shown] == [(0, 0.0), (0, 0.0)]

        await until(is_level)
        delivered = {each["name"]: each["delivered"] for each in (await api("GET", SINKS)).json["items"]}
        assert delivered["monitoring"] == 2
        assert delivered["audit"] > delivered["monitoring"]


async def test_F13_a_moved_publish_time_is_the_event_rescheduled(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit", types=["horai.instance.rescheduled"])
        await job(api, receiver, "publish", Answer(200))
        first, second = datetime(2030, 1, 1, 9, tzinfo=UTC), datetime(2030, 1, 2, 9, tzinfo=UTC)
        for moment in (first, second):
            body = {"executeTime": moment.isoformat()}
            assert (await api("PUT", "/api/v1/jobs/publish/instances/article:42", body)).status in {200, 201}
        await when(lambda: types(receiver, "audit") == ["horai.instance.rescheduled"])
        [event] = events_at(receiver, "audit")
        assert event["data"]["key"] == "article:42"
        assert datetime.fromisoformat(event["data"]["was"]) == first
        assert datetime.fromisoformat(event["data"]["executeTime"]) == second


async def test_webhooks_are_signed_with_the_secret_of_the_tenant(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit", headers={"Authorization": "Bearer token-1"})
        await job(api, receiver, "hello", Answer(200))
        await when(lambda: bool(events_at(receiver, "audit")))
        hit: Hit = next(hit for hit in receiver.hits if hit.path == "/audit")
        assert hit.headers["authorization"] == "Bearer token-1"
        assert hit.headers["content-type"] == "application/cloudevents+json"
        [secret] = (await api("GET", "/api/v1/signing-secrets")).json["items"]
        key = base64.b64decode(secret["secret"].removeprefix("whsec_"))
        text = f"{hit.headers['webhook-id']}.{hit.headers['webhook-timestamp']}.".encode() + hit.body
        expected = base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()
        assert hit.headers["webhook-signature"] == f"v1,{expected}"
        shown = (await api("GET", f"{SINKS}/audit")).json
        assert shown["headers"] == {"Authorization": "***"}


async def test_a_sink_that_is_down_loses_nothing_keeps_the_order_and_catches_up(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit", Answer(503), batch=10)
        await job(api, receiver, "hello", Answer(200))
        items = [{"key": f"k{number}"} for number in range(200)]
        assert (await api("POST", "/api/v1/jobs/hello/instances/batch", {"items": items})).status == 200

        async def has_failed() -> bool:
            shown = (await api("GET", f"{SINKS}/audit")).json
            return shown["failures"] >= 2 and shown["behind"] >= 200

        await until(has_failed)
        shown = (await api("GET", f"{SINKS}/audit")).json
        assert shown["lastError"].endswith("answered HTTP 503")
        assert shown["lagSeconds"] > 0
        receiver.on("/audit", Answer(200))
        assert (await api("POST", f"{SINKS}/audit/resume")).status == 200
        await connection.execute("update horai.sink set next_try = null")

        async def is_level() -> bool:
            return (await api("GET", f"{SINKS}/audit")).json["behind"] == 0

        await until(is_level)
        got = events_at(receiver, "audit")
        done = [event["data"]["key"] for event in got if event["type"] == "horai.instance.done"]
        assert sorted(done) == sorted(item["key"] for item in items)
        positions = [int(event["sequence"]) for event in got]
        assert positions == sorted(set(positions)), "in order, and none twice"


async def test_a_receiver_that_answers_410_is_sent_nothing_more(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit", Answer(410))
        await job(api, receiver, "hello", Answer(200))

        async def is_paused() -> bool:
            return (await api("GET", f"{SINKS}/audit")).json["status"] == "PAUSED"

        await until(is_paused)
        assert len([hit for hit in receiver.hits if hit.path == "/audit"]) == 1


async def test_a_replay_sends_all_events_since_a_time_again_in_order(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit", types=["horai.instance.done"])
        await job(api, receiver, "hello", Answer(200))
        for number in range(5):
            assert (await api("PUT", f"/api/v1/jobs/hello/instances/k{number}", {})).status == 201
        await when(lambda: len(events_at(receiver, "audit")) == 5)

        async def is_level() -> bool:
            return (await api("GET", f"{SINKS}/audit")).json["behind"] == 0

        await until(is_level)
        since = (datetime.now(UTC) - timedelta(minutes=15)).isoformat()
        replayed = await api("POST", f"{SINKS}/audit/replay", {"since": since})
        assert (replayed.status, replayed.json) == (200, {"replayed": 5})
        await when(lambda: len(events_at(receiver, "audit")) == 10)
        ids = [event["id"] for event in events_at(receiver, "audit")]
        assert ids[:5] == ids[5:]
        later = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
        assert (await api("POST", f"{SINKS}/audit/replay", {"since": later})).json == {"replayed": 0}


async def test_wrong_definitions_of_sinks_are_refused_with_every_wrong_field(url: str) -> None:
    async with harness.node(url) as api:
        wrong = {"kind": "nats", "url": "http://127.0.0.1/", "broker": "unknown", "subject": "a b", "batch": 2}
        refused = await api("PUT", f"{SINKS}/audit", wrong)
        assert refused.status == 422
        assert sorted(error["field"] for error in refused.json["errors"]) == ["batch", "broker", "subject", "url"]
        assert (await api("PUT", f"{SINKS}/audit", {"kind": "webhook"})).json["errors"][0]["field"] == "url"
        assert (await api("PUT", f"{SINKS}/-x", {"kind": "log"})).status == 422
        assert (await api("PUT", f"{SINKS}/audit", {"kind": "log", "types": ["done"]})).status == 422
        assert (await api("PUT", f"{SINKS}/audit", {"kind": "log", "color": 1})).status == 422
        assert (await api("GET", f"{SINKS}/audit")).status == 404
        made = await api("PUT", f"{SINKS}/audit", {"kind": "log"})
        assert made.status == 201
        stale = await api("PUT", f"{SINKS}/audit", {"kind": "log", "batch": None}, If_Match='"7"')
        assert stale.status == 412
        assert (await api("DELETE", f"{SINKS}/audit")).status == 204


async def test_without_a_sink_nothing_is_recorded(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "hello", Answer(200))
        assert (await api("PUT", "/api/v1/jobs/hello/instances/before", {})).status == 201
        await when(lambda: len(receiver.hits) == 1)
        await sink(api, receiver, "audit", types=["horai.instance.done"])
        assert (await api("PUT", "/api/v1/jobs/hello/instances/during", {})).status == 201
        await when(lambda: len(events_at(receiver, "audit")) == 1)
        assert (await api("DELETE", f"{SINKS}/audit")).status == 204

        async def is_off() -> bool:
            return not await connection.fetchval("select is_on from horai.outbox_cursor")

        await until(is_off)
        recorded = await connection.fetchval("select count(*) from horai.outbox")
        assert (await api("PUT", "/api/v1/jobs/hello/instances/after", {})).status == 201
        await when(lambda: len(receiver.hits) == 4)
        await asyncio.sleep(0)
        assert await connection.fetchval("select count(*) from horai.outbox") == recorded
        [event] = events_at(receiver, "audit")
        assert event["data"]["key"] == "during"


async def test_the_lag_shows_an_open_transaction_that_keeps_events_back(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit", types=["horai.instance.done"])
        await job(api, receiver, "hello", Answer(200))
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("select pg_current_xact_id()")
        assert (await api("PUT", "/api/v1/jobs/hello/instances/k", {})).status == 201

        async def is_late() -> bool:
            return (await api("GET", f"{SINKS}/audit")).json["lagSeconds"] > 1.5

        await until(is_late)
        async with api.session.get(f"{api.base}/metrics") as response:
            [line] = [each for each in (await response.text()).splitlines() if 'lag_seconds{status="ACTIVE"}' in each]
        assert float(line.rpartition(" ")[2]) > 1.5
        assert events_at(receiver, "audit") == []
        await transaction.commit()
        await when(lambda: len(events_at(receiver, "audit")) == 1)

        async def is_level() -> bool:
            return (await api("GET", f"{SINKS}/audit")).json["lagSeconds"] == 0

        await until(is_level)


async def test_an_event_that_no_wake_announced_is_noticed_with_the_next_beat(url: str, connection: Platform) -> None:
    """An instance that waits is cancelled by SQL, in the transaction of a caller: no process is notified."""
    async with Receiver() as receiver, harness.node(url) as api:
        await sink(api, receiver, "audit", types=["horai.instance.cancelled"])
        await job(api, receiver, "hello", Answer(200))
        later = {"executeTime": "2999-01-01T00:00:00Z"}
        assert (await api("PUT", "/api/v1/jobs/hello/instances/k", later)).status == 201
        await connection.fetch("select * from horai.cancel_instance('hello', 'k')")
        await when(lambda: types(receiver, "audit") == ["horai.instance.cancelled"])
