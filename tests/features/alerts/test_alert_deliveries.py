"""Deliveries: grouped, retried until they are taken, in order, silenced, and never lost when the leader dies."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import harness
import letters
import make
import pytest
from alert_yard import CHANNELS, QUICK, channel, kinds, rule, told, until_listed, watching
from databases import Superuser
from harness import Client, NodeProcess
from receiver import HOLD, Answer, Receiver
from stages import workbench

from api import given
from horai.features import alerts
from horai.features.alerts import delivery_store, engine_store
from horai.features.alerts.senders import SendResult
from horai.features.alerts.stage import AlertsStage

NO_RETRY = {"maxRetry": 0}
SILENCES = "/api/v1/alerts/silences"
DELIVERIES = "/api/v1/alerts/deliveries"


async def dead(api: Client, receiver: Receiver, count: int = 1, **fields: Any) -> Any:
    """A job with instances that die; the job."""
    job = await given.scripted(api, receiver, Answer(400), retry=NO_RETRY, **fields)
    items = [{"key": f"k{number}"} for number in range(count)]
    assert (await api("POST", f"/api/v1/jobs/{job['name']}/instances/batch", {"items": items})).status < 300
    return job


async def test_alerts_of_a_group_are_one_message_that_counts_them_and_lists_ten(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD", groupWait="1s")
        await dead(api, receiver, 12)
        messages = await told(receiver, 1)
        assert (messages[0]["count"], len(messages[0]["alerts"])) == (12, 10)
        assert messages[0]["text"].count("\n- ") == 9
        assert "and 2 more" in messages[0]["text"]
        (delivery,) = await until_listed(api, f"{DELIVERIES}?status=DELIVERED", 1)
        assert (delivery["alerts"], delivery["attempt"], delivery["httpStatus"]) == (12, 1, 200)


async def test_alerts_that_still_fire_are_repeated(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD", repeatEvery="1h")
        await dead(api, receiver)
        await told(receiver, 1)
        await until_listed(api, f"{DELIVERIES}?status=DELIVERED", 1)
        await connection.execute("update horai.alert set notified_at = notified_at - interval '59 minutes 59 seconds'")
        await connection.execute("select pg_notify('horai_wake', 'l')")
        assert kinds(await told(receiver, 2)) == ["firing", "repeated"]


async def test_a_channel_that_is_down_gets_every_message_in_order_when_it_is_back(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/alerts", Answer(503), Answer(503), Answer(manner="drop"), Answer(204))
        await watching(api, receiver, "MODE_ENTERED")
        for state in ("ON", "AUTO"):
            assert (await api("POST", "/api/v1/scheduler/mode", {"mode": "CORE_ONLY", "state": state})).status == 200
        messages = await told(receiver, 5)
        assert kinds(messages) == ["firing"] * 4 + ["resolved"]
        assert len({message["id"] for message in messages}) == 2
        resolved, firing = await until_listed(api, f"{DELIVERIES}?status=DELIVERED", 2)
        assert (firing["kind"], firing["attempt"], firing["httpStatus"], firing["error"]) == ("FIRING", 4, 204, None)
        assert (resolved["kind"], resolved["attempt"]) == ("RESOLVED", 1)


async def test_a_message_is_given_up_after_a_day_and_the_next_one_is_sent(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/alerts", Answer(503))
        await watching(api, receiver, "INSTANCE_DEAD")
        await dead(api, receiver)
        await told(receiver, 1)
        (pending,) = (await api("GET", f"{DELIVERIES}?status=PENDING")).json["items"]
        assert (pending["error"], pending["finishedAt"]) in {(None, None), ("HTTP 503", None)}
        assert pending["nextTryAt"] is not None
        await connection.execute("update horai.alert_delivery set created_at = created_at - interval '1 day'")
        (failed,) = await until_listed(api, f"{DELIVERIES}?status=FAILED", 1)
        assert (failed["error"], failed["httpStatus"], failed["nextTryAt"]) == ("HTTP 503", 503, None)
        receiver.on("/alerts", Answer(200))
        await dead(api, receiver)
        await until_listed(api, f"{DELIVERIES}?status=DELIVERED", 1)


async def test_a_silence_holds_alerts_which_are_sent_when_it_ends_while_they_fire(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD")
        quiet = await given.scripted(api, receiver, Answer(400), retry=NO_RETRY)
        made = await api("POST", SILENCES, {"job": quiet["name"], "lasts": "1h", "note": "upgrade"})
        assert (made.status, made.json["note"], made.json["actor"]) == (201, "upgrade", "")
        await api("POST", f"/api/v1/jobs/{quiet['name']}/trigger", Idempotency_Key="quiet")
        await until_listed(api, "/api/v1/dlq", 1)
        loud = await dead(api, receiver)
        (message,) = await told(receiver, 1)
        assert [alert["job"] for alert in message["alerts"]] == [loud["name"]]
        silenced = [row for row in await until_listed(api, "/api/v1/alerts", 2) if row["silencedBy"]]
        assert [(row["job"], row["silencedBy"], row["notifiedAt"]) for row in silenced] == [
            (quiet["name"], made.json["id"], None)
        ]
        assert (await api("DELETE", f"{SILENCES}/{made.json['id']}")).status == 204
        assert (await api("DELETE", f"{SILENCES}/{made.json['id']}")).status == 404
        messages = await told(receiver, 2)
        assert [alert["job"] for alert in messages[1]["alerts"]] == [quiet["name"]]
        assert (await api("GET", SILENCES)).json["items"] == []


async def test_a_silence_ends_by_itself_and_a_window_begins_later(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD")
        later = datetime.now(UTC) + timedelta(hours=1)
        window = {"startsAt": later.isoformat(), "lasts": "2h", "rule": "watch"}
        planned = await api("POST", SILENCES, window)
        assert datetime.fromisoformat(planned.json["endsAt"]) == later + timedelta(hours=2)
        await dead(api, receiver)
        await told(receiver, 1)
        assert (await api("POST", SILENCES, {"tag": "shop", "lasts": "1500ms"})).status == 201
        await dead(api, receiver, tags=["shop"])
        messages = await told(receiver, 2)
        ended = (await api("GET", f"{SILENCES}?ended=true")).json["items"]
        over = next(each for each in ended if each["tag"] == "shop")
        assert datetime.fromisoformat(messages[1]["time"]) >= datetime.fromisoformat(over["endsAt"]) - timedelta(
            milliseconds=1
        )


async def test_a_silence_needs_one_end_after_its_start(url: str) -> None:
    async with harness.node(url) as api:
        past = "2026-01-01T00:00:00Z"
        for body in ({}, {"lasts": "1h", "endsAt": past}, {"endsAt": past}, {"startsAt": past, "lasts": "1h"}):
            assert (await api("POST", SILENCES, body)).json["errors"][0]["field"] == "endsAt"
        assert (await api("POST", SILENCES, {"lasts": "soon"})).json["errors"][0]["field"] == "lasts"


async def test_a_leader_that_is_killed_between_send_and_settle_sends_again_and_loses_nothing(
    url: str, short_place: Path
) -> None:
    flags = ("--lease-ttl", "2s", "--callback-allow", "127.0.0.0/8")
    async with Receiver() as receiver, aiohttp.ClientSession() as session:
        receiver.on("/alerts", HOLD)
        first = await asyncio.to_thread(NodeProcess(short_place / "leader", url, *flags).start)
        try:
            api = Client(first.base, session)
            await watching(api, receiver, "INSTANCE_DEAD")
            await dead(api, receiver)
            await told(receiver, 1)
        finally:
            first.kill()
        second = await asyncio.to_thread(NodeProcess(short_place / "follower", url, *flags).start)
        try:
            messages = await told(receiver, 2)
            assert messages[0]["id"] == messages[1]["id"]
            receiver.let_go()
            (delivery,) = await until_listed(Client(second.base, session), f"{DELIVERIES}?status=DELIVERED", 1)
            assert delivery["attempt"] == 2
        finally:
            second.stop()


async def test_without_a_rule_the_stage_sends_nothing_and_an_idle_rule_costs_one_statement_a_minute(url: str) -> None:
    async with workbench(url) as bench:
        stage = bench.feature_stage(alerts.FEATURE)
        begun = bench.clock.now()
        await stage.step(begun)
        tap = await bench.tap(stage.line)
        now = begun
        while now < begun + timedelta(minutes=14):
            now = await stage.step(now)
        assert await tap.names() == []
        await bench.connection.execute(
            """insert into horai.alert_rule (tenant_id, name, kind, definition, wait, channels, group_wait, repeat_every)
            select 1, kind, kind, '{"by": "00:00", "timezone": "UTC", "weekdays": ["SUN"], "job": "j", "burnRate": 1}', interval '1 h', '{}', interval '0', interval '4 h'
            from unnest(array['INSTANCE_DEAD', 'RUN_BLOCKED', 'NOT_SUCCESS_BY', 'JOB_LATE', 'QUEUE_WAIT', 'HEARTBEAT_MISSING',
                'RECONCILE_DRIFT', 'MODE_ENTERED', 'BUDGET_BURN']) as kind"""
        )
        assert isinstance(stage, AlertsStage)
        stage.wake()
        now = await stage.step(now)
        before, begun = len(await tap.names()), now
        while now < begun + timedelta(minutes=10):
            now = await stage.step(now)
        assert len(await tap.names()) - before <= 20


async def test_two_leaders_tell_of_a_dead_instance_once(url: str) -> None:
    async with workbench(url, callback_allow=harness.LOOPBACK) as bench, Receiver() as receiver:
        await bench.connection.execute(
            """insert into horai.alert_channel (tenant_id, name, kind, language, config)
            values (1, 'ops', 'slack', 'en', json_build_object('masked', '[]'::json, 'hidden', json_build_object('url', $1::text)));""",
            receiver.url("/alerts"),
        )
        await bench.connection.execute(
            """insert into horai.alert_rule (tenant_id, name, kind, definition, channels, group_wait, repeat_every)
            values (1, 'dead', 'INSTANCE_DEAD', '{}', '{ops}', interval '0', interval '4 h')"""
        )
        await make.job(bench.scope, "publish")
        await letters.of_keys(bench.scope, bench.connection, ["a", "b"])
        both = [bench.feature_stage(alerts.FEATURE) for _ in range(2)]
        for _ in range(4):
            await asyncio.gather(*(stage.step(bench.clock.now()) for stage in both))
            later = await bench.connection.fetchval("select clock_timestamp() + interval '2 s'")
            bench.clock.observe(later, time.monotonic())
        assert await bench.connection.fetchval("select count(*) from horai.alert") == 2
        assert await bench.connection.fetchval("select count(*) from horai.alert_delivery") == 1
        assert len(receiver.hits) == 1


async def test_a_deleted_channel_fails_its_pending_message_at_once(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/alerts", Answer(503))
        await channel(api, receiver.url("/alerts"))
        await channel(api, receiver.url("/other"), "second")
        await rule(api, "INSTANCE_DEAD", "dead")
        await dead(api, receiver)
        await told(receiver, 1)
        body = {"kind": "INSTANCE_DEAD", "channels": ["second"]}
        assert (await api("PUT", "/api/v1/alerts/rules/dead", body)).status == 200
        assert (await api("DELETE", f"{CHANNELS}/ops")).status == 204
        (failed,) = await until_listed(api, f"{DELIVERIES}?status=FAILED", 1)
        assert (failed["channel"], failed["error"]) == ("ops", "the channel was deleted")


DELIVERY = """insert into horai.alert_delivery (tenant_id, channel_id, channel, kind, alerts, message, status)
    values (1, 1, 'gone', 'FIRING', 1, '{}', 'PENDING')"""


async def test_the_late_result_of_an_earlier_try_changes_nothing(url: str) -> None:
    async with workbench(url) as bench:
        connection = await bench.line("alerts").get()
        await bench.connection.execute(DELIVERY)
        (first,) = await delivery_store.take_deliveries(connection, 10, timedelta(0))
        (second,) = await delivery_store.take_deliveries(connection, 10, timedelta(0))
        assert (first.attempt, second.attempt) == (1, 2)
        day = timedelta(days=1)
        late = await delivery_store.settle_delivery(connection, first, SendResult("late"), day, is_hopeless=False)
        assert late is None
        taken = SendResult(None, 200, is_delivered=True)
        assert await delivery_store.settle_delivery(connection, second, taken, day, is_hopeless=False) == "DELIVERED"
        again = await delivery_store.settle_delivery(connection, second, SendResult("late"), day, is_hopeless=False)
        assert again is None


async def test_two_evaluations_at_once_find_a_condition_once(url: str) -> None:
    async with workbench(url) as bench:
        await bench.connection.execute(
            """insert into horai.heartbeat (tenant_id, name, every, grace, active_from) values (1, 'b', '1 s', '0', now() - interval '1 h');
            insert into horai.alert_rule (tenant_id, name, kind, definition, channels, group_wait, repeat_every)
                values (1, 'beats', 'HEARTBEAT_MISSING', '{}', '{}', interval '0', interval '4 h')"""
        )
        one, other = (
            await bench.line("one", timedelta(seconds=10)).get(),
            await bench.line("two", timedelta(seconds=10)).get(),
        )
        held = one.transaction()
        await held.start()
        assert (await engine_store.evaluate_times(one, 0.001)).fired == 1
        waiting = asyncio.create_task(engine_store.evaluate_times(other, 0.001))
        await asyncio.wait({waiting}, timeout=0.5)
        await held.commit()
        assert (await waiting).fired == 0
        assert await bench.connection.fetchval("select count(*) from horai.alert") == 1


async def test_news_is_told_however_many_alerts_still_fire(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_store, "OPEN_ALERTS", 2)
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD")
        for count in range(1, 5):
            await dead(api, receiver)
            assert kinds(await told(receiver, count)) == ["firing"] * count
