"""Acts of operators: an alert is acknowledged, and a message is sent again."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import harness
from alert_yard import CHANNELS, QUICK, kinds, rule, told, until_listed, watching
from databases import Superuser
from harness import Client
from receiver import Answer, Receiver

from api import given

ALERTS, DELIVERIES = "/api/v1/alerts", "/api/v1/alerts/deliveries"
OVERDUE = "update horai.alert set notified_at = notified_at - interval '5 hours'"


async def dead(api: Client, receiver: Receiver) -> None:
    """Let an instance die."""
    job = await given.scripted(api, receiver, Answer(400), retry={"maxRetry": 0})
    made = await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key=given.name("key"))
    assert made.status < 300


async def firing(api: Client) -> Any:
    """The alert that fires and was told, as soon as there is one."""
    async with asyncio.timeout(30):
        while True:
            (one,) = await until_listed(api, ALERTS, 1)
            if one["notifiedAt"] is not None:
                return one
            await asyncio.sleep(0.02)


async def decided(connection: Superuser) -> None:
    """Let the node evaluate and decide."""
    await connection.execute("select pg_notify('horai_wake', 'l')")


async def written(api: Client, verb: str) -> list[Any]:
    return (await api("GET", f"/api/v1/audit?verb={verb}")).json["items"]


async def test_repeats_of_an_alert_stop_when_it_is_acknowledged_and_its_end_is_told(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD")
        await dead(api, receiver)
        alert = await firing(api)
        assert (alert["acknowledgedAt"], alert["acknowledgedBy"]) == (None, None)

        path = f"{ALERTS}/{alert['id']}/acknowledge"
        first = await api("POST", path, {"note": "ticket 4711"}, Idempotency_Key="one")
        assert first.status == 200, first.json
        assert (first.json["acknowledgedNote"], first.json["acknowledgedBy"]) == ("ticket 4711", "")
        assert datetime.fromisoformat(first.json["acknowledgedAt"]) <= datetime.now(UTC)
        again = await api("POST", path, {"note": "another"}, Idempotency_Key="two")
        assert (again.status, again.json) == (200, first.json), "the second one changes nothing"
        (line,) = await written(api, "alert.acknowledge")
        assert (line["object"]["id"], line["after"]) == (
            alert["id"],
            {"rule": "watch", "object": alert["object"], "note": "ticket 4711"},
        )
        assert (await api("GET", ALERTS)).json["items"] == [first.json]

        await connection.execute(OVERDUE)
        await decided(connection)
        (letter,) = (await api("GET", "/api/v1/dlq")).json["items"]
        assert (await api("POST", f"/api/v1/dlq/{letter['id']}/discard")).status < 300
        messages = await told(receiver, 2)
        assert kinds(messages) == ["firing", "resolved"], "nothing was repeated in between"
        assert (await api("POST", path)).status == 200, "still the same request"


async def test_an_acknowledged_alert_that_gets_worse_is_told_again_and_is_not_acknowledged_any_more(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "QUEUE_WAIT", queue="slow", after="100ms")
        body = {"name": "mail", "queue": "slow", "target": {"type": "worker", "handler": "mail"}}
        assert (await api("POST", "/api/v1/jobs", body)).status == 201

        async def trigger(count: int) -> None:
            for _ in range(count):
                await api("POST", "/api/v1/jobs/mail/trigger", Idempotency_Key=given.name("late"))

        async def until_measured(figure: int) -> None:
            async with asyncio.timeout(30):
                while (await connection.fetchval("select data ->> 'instances' from horai.alert")) != str(figure):
                    await asyncio.sleep(0.02)

        await trigger(1)
        alert = await firing(api)
        await trigger(1)  # more than when it fired, and before the acknowledgement
        assert (await api("POST", f"{ALERTS}/{alert['id']}/acknowledge")).status == 200
        await until_measured(2)
        await trigger(1)
        await until_measured(3)
        (known,) = (await api("GET", ALERTS)).json["items"]
        assert known["acknowledgedAt"] is not None
        await trigger(1)
        messages = await told(receiver, 2)
        assert kinds(messages) == ["firing", "repeated"]
        assert messages[1]["alerts"][0]["data"]["instances"] == 4
        (known,) = (await api("GET", ALERTS)).json["items"]
        assert (known["acknowledgedAt"], known["acknowledgedBy"], known["acknowledgedNote"]) == (None, None, None)


async def test_a_higher_level_of_a_mode_ends_the_acknowledgement_and_its_end_resolves_the_alert(
    url: str, connection: Superuser
) -> None:
    add = "insert into horai.mode_change (mode, level, is_dry_run, cause) values ('SHED_LOW', $1, false, '{}')"
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "MODE_ENTERED", modes=["SHED_LOW"])
        await connection.execute(add, 1)
        alert = await firing(api)
        assert (await api("POST", f"{ALERTS}/{alert['id']}/acknowledge")).status == 200
        await decided(connection)
        async with asyncio.timeout(30):
            while await connection.fetchval("select acknowledged_data is null from horai.alert"):
                await asyncio.sleep(0.02)
        await connection.execute(add, 2)
        assert kinds(await told(receiver, 2)) == ["firing", "repeated"]
        await connection.execute(add, 0)
        assert kinds(await told(receiver, 3))[-1] == "resolved"


async def test_only_an_alert_of_the_tenant_that_fires_is_acknowledged(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD")
        await dead(api, receiver)
        alert = await firing(api)
        for unknown in ("0", "x", "9" * 30):
            missing = await api("POST", f"{ALERTS}/{unknown}/acknowledge")
            assert (missing.status, missing.json["code"]) == (404, "SCH_404_NOT_FOUND")
            assert ALERTS in missing.json["hint"]
        await connection.execute("update horai.alert set tenant_id = 99")
        assert (await api("POST", f"{ALERTS}/{alert['id']}/acknowledge")).status == 404
        await connection.execute("update horai.alert set tenant_id = 1, resolved_at = now(), closed_at = now()")
        late = await api("POST", f"{ALERTS}/{alert['id']}/acknowledge")
        assert late.status == 409
        assert late.json["hint"]
        assert await written(api, "alert.acknowledge") == []


async def test_a_message_that_was_given_up_is_sent_again_as_a_new_delivery(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/alerts", Answer(503))
        await watching(api, receiver, "INSTANCE_DEAD")
        await dead(api, receiver)
        (message,) = await told(receiver, 1)
        (pending,) = (await api("GET", DELIVERIES)).json["items"]
        path = f"{DELIVERIES}/{pending['id']}/redeliver"
        early = await api("POST", path)
        assert (early.status, bool(early.json["hint"])) == (409, True), "it is still tried"

        await connection.execute("update horai.alert_delivery set created_at = created_at - interval '1 day'")
        (failed,) = await until_listed(api, f"{DELIVERIES}?status=FAILED", 1)
        receiver.on("/alerts", Answer(200))
        before = len(await told(receiver, 1))
        made = await api("POST", path, Idempotency_Key="again")
        assert made.status == 201, made.json
        assert (made.json["status"], made.json["attempt"], made.json["redeliveryOf"]) == ("PENDING", 0, failed["id"])
        assert (await api("POST", path, Idempotency_Key="again")).json == made.json
        sent = (await told(receiver, before + 1))[-1]
        assert {**sent, "id": message["id"]} == message, "the same message"
        assert sent["id"] != message["id"], "of a delivery of its own"
        (delivered,) = await until_listed(api, f"{DELIVERIES}?status=DELIVERED", 1)
        assert (delivered["id"], delivered["redeliveryOf"], delivered["rule"]) == (
            made.json["id"],
            failed["id"],
            "watch",
        )
        (line,) = await written(api, "alert_delivery.redeliver")
        assert (line["object"]["id"], line["after"]["redelivery"]) == (failed["id"], made.json["id"])

        third = await api("POST", f"{DELIVERIES}/{delivered['id']}/redeliver")
        assert third.status == 201, "one that was delivered is sent again as well"


async def test_a_redelivery_waits_for_the_one_before_and_needs_a_channel_of_the_tenant(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        made = await api("POST", CHANNELS, {"name": "ops", "kind": "webhook", "url": receiver.url("/alerts")})
        assert made.status == 201
        await rule(api, "INSTANCE_DEAD")
        tested = (await api("POST", f"{CHANNELS}/ops/test")).json
        path = f"{DELIVERIES}/{tested['id']}/redeliver"
        receiver.on("/alerts", Answer(503))
        replies = await asyncio.gather(*(api("POST", path) for _ in range(4)))
        assert sorted(reply.status for reply in replies) == [201, 409, 409, 409]

        for unknown in ("0", "x"):
            missing = await api("POST", f"{DELIVERIES}/{unknown}/redeliver")
            assert (missing.status, DELIVERIES in missing.json["hint"]) == (404, True)
        await connection.execute("delete from horai.alert_delivery where status = 'PENDING'")
        await connection.execute("update horai.alert_delivery set tenant_id = 99")
        assert (await api("POST", path)).status == 404
        await connection.execute("update horai.alert_delivery set tenant_id = 1")
        assert (await api("DELETE", "/api/v1/alerts/rules/watch")).status == 204
        assert (await api("DELETE", f"{CHANNELS}/ops")).status == 204
        gone = await api("POST", path)
        assert (gone.status, CHANNELS in gone.json["hint"]) == (409, True)
