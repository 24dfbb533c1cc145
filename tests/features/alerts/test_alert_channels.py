"""Channels: what they store and show, and test calls over real HTTP and SMTP."""

import asyncio
import base64
import json
import ssl
from pathlib import Path
from typing import Any

import harness
import pytest
from alert_yard import CHANNELS, QUICK, RULES, channel, rule
from certificates import certificate
from databases import Superuser
from harness import Client
from keys import holder
from mail_server import MailServer
from receiver import Answer, Receiver, redirect

from api.conftest import SOME_KEY

MAIL = {"name": "mail", "kind": "email", "host": "127.0.0.1", "from": "horai@example.com", "to": ["ops@example.com"]}


async def tried(api: Client, name: str = "ops") -> Any:
    reply = await api("POST", f"{CHANNELS}/{name}/test")
    assert reply.status == 200, reply.json
    return reply.json


@pytest.mark.parametrize(
    ("kind", "reply", "text_at"),
    [
        ("webhook", Answer(204), ("text",)),
        ("slack", Answer(200, body=b"ok"), ("text",)),
        ("feishu", Answer(json={"code": 0}), ("content", "text")),
        ("dingtalk", Answer(json={"errcode": 0}), ("text", "content")),
        ("wecom", Answer(json={"errcode": 0}), ("text", "content")),
    ],
)
async def test_a_test_call_reaches_the_channel_and_is_in_the_log(
    url: str, kind: str, reply: Answer, text_at: tuple[str, ...]
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/hook", reply)
        await channel(api, receiver.url("/hook"), kind=kind, language="zh-CN")
        result = await tried(api)
        assert (result["status"], result["httpStatus"], result["error"], result["kind"]) == (
            "DELIVERED", reply.status, None, "TEST",
        )  # fmt: skip
        body = receiver.hits[0].json
        for name in text_at:
            body = body[name]
        assert "渠道工作正常" in body
        (logged,) = (await api("GET", "/api/v1/alerts/deliveries?channel=ops")).json["items"]
        assert logged == result
        assert (await api("GET", "/api/v1/alerts/deliveries?status=FAILED")).json["items"] == []


@pytest.mark.parametrize(
    ("kind", "reply", "error"),
    [
        ("webhook", Answer(500), "HTTP 500"),
        ("webhook", redirect("http://127.0.0.1:9/"), "HTTP 307"),
        ("dingtalk", Answer(json={"errcode": 310000}), "the service answered with the code 310000"),
        ("slack", Answer(manner="drop"), "the message was not sent (ServerDisconnectedError)"),
    ],
)
async def test_a_test_call_returns_the_real_failure(url: str, kind: str, reply: Answer, error: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/hook", reply)
        await channel(api, receiver.url("/hook"), kind=kind)
        result = await tried(api)
        assert (result["status"], result["error"]) == ("FAILED", error)
        assert len(receiver.hits) == 1


async def test_a_test_call_dials_no_address_that_callbacks_may_not_dial(url: str) -> None:
    async with harness.node(url, callback_allow=()) as api, Receiver() as receiver, MailServer() as mail:
        await channel(api, receiver.url("/hook"))
        assert "is not at a public address" in (await tried(api))["error"]
        assert (await api("POST", CHANNELS, {**MAIL, "port": mail.port, "security": "none"})).status == 201
        assert "is not at a public address" in (await tried(api, "mail"))["error"]
        assert (receiver.hits, mail.mails) == ([], [])


async def test_a_repeated_test_call_sends_one_message(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/hook", Answer(delay=2.5))  # longer than a silent transaction may last
        await channel(api, receiver.url("/hook"))
        first = await api("POST", f"{CHANNELS}/ops/test", Idempotency_Key="one")
        again = await api("POST", f"{CHANNELS}/ops/test", Idempotency_Key="one")
        assert first.json["status"] == "DELIVERED"
        assert (again.json, again.headers["Idempotency-Replayed"]) == (first.json, "true")
        assert len(receiver.hits) == 1


@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
async def test_a_mail_is_sent_by_smtp_with_tls_and_a_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    cert, key = certificate(tmp_path, "127.0.0.1")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    is_open = security == "none"
    server = MailServer(None if is_open else "right", None if is_open else tls, implicit=security == "tls")
    login = {} if is_open else {"username": "horai", "password": "right"}
    async with harness.node(url, **QUICK) as api, server as mail:
        body = {**MAIL, **login, "port": mail.port, "security": security, "to": ["ops@example.com", "b@example.com"]}
        assert (await api("POST", CHANNELS, body)).status == 201
        if not is_open:
            fault = (await tried(api, "mail"))["error"]
            assert "was not sent (the certificate of the host is not trusted)" in fault
            assert mail.mails == []
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        result = await tried(api, "mail")
        assert (result["status"], result["error"]) == ("DELIVERED", None)
        (sent,) = mail.mails
        assert (sent["Subject"], sent["From"]) == ("[Test] Test of this channel", "horai@example.com")
        assert mail.receivers == [["ops@example.com", "b@example.com"]]
        assert "This message was sent by hand." in sent.get_content()
        if not is_open:
            wrong = {**{name: value for name, value in body.items() if name != "name"}, "password": "wrong"}
            assert (await api("PUT", f"{CHANNELS}/mail", wrong)).status == 200
            assert (await tried(api, "mail"))["error"] == "the mail server answered 535"


async def test_a_mail_that_some_receivers_refuse_is_delivered_with_an_error_and_one_that_all_refuse_is_not(
    url: str,
) -> None:
    async with harness.node(url, **QUICK) as api, MailServer() as mail:
        mail.refused = {"gone@example.com"}
        body = {**MAIL, "port": mail.port, "security": "none", "to": ["ops@example.com", "gone@example.com"]}
        assert (await api("POST", CHANNELS, body)).status == 201
        result = await tried(api, "mail")
        assert (result["status"], result["error"]) == ("DELIVERED", "the mail server refused 1 receivers")
        mail.refused |= {"ops@example.com"}
        assert (await tried(api, "mail"))["status"] == "FAILED"


async def test_urls_and_secrets_are_never_shown_and_stored_only_in_an_envelope(
    url: str, connection: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(SOME_KEY.key).decode())
    async with harness.node(url, encryption_keys=(SOME_KEY,), **QUICK) as api, Receiver() as receiver:
        receiver.on("/hook-canary", Answer(json={"code": 0}))
        made = await channel(api, receiver.url("/hook-canary"), kind="feishu", secret="secret-canary")
        assert (made["url"], made["secret"], made["host"]) == ("***", "***", f"127.0.0.1:{receiver.port}")
        for path in (CHANNELS, f"{CHANNELS}/ops", "/api/v1/audit", "/api/v1/alerts/deliveries"):
            assert "canary" not in json.dumps((await api("GET", path)).json)
        stored = await connection.fetchval("select config::text from horai.alert_channel")
        assert "canary" not in stored
        assert (await tried(api))["status"] == "DELIVERED"
        assert receiver.hits[0].json["sign"]


async def test_stars_keep_stored_values_while_the_host_stays(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        receiver.on("/hook", Answer(json={"code": 0}))
        await channel(api, receiver.url("/hook"), kind="feishu", secret="one")
        kept = {"kind": "feishu", "url": "***", "secret": "***", "language": "zh-CN"}
        changed = await api("PUT", f"{CHANNELS}/ops", kept, If_Match='"1"')
        assert (changed.status, changed.json["version"], changed.headers["ETag"]) == (200, 2, '"2"')
        assert (await tried(api))["status"] == "DELIVERED"
        stale = await api("PUT", f"{CHANNELS}/ops", kept, If_Match='"1"')
        assert stale.status == 412
        moved = await api("PUT", f"{CHANNELS}/ops", {**kept, "url": "http://other.example/hook"})
        assert (moved.status, moved.json["errors"][0]["field"]) == (422, "secret")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "slack"}, "url"),
        ({"kind": "slack", "url": "ftp://x.example/"}, "url"),
        ({"kind": "slack", "url": "https://user:password@x.example/"}, "url"),
        ({"kind": "slack", "url": "https://x.example/", "secret": "s"}, "secret"),
        ({"kind": "webhook", "url": "https://x.example/", "secret": "plain"}, "secret"),
        ({"kind": "slack", "url": "***"}, "url"),
        ({"kind": "email", "host": "x.example", "from": "a@b.example", "to": ["no address"]}, "to"),
        ({"kind": "email", "host": "x.example", "from": "a@b.example\r\nBcc: c", "to": ["a@b.example"]}, "from"),
        ({"kind": "email", "host": "x.example", "from": "a@b.c", "to": ["a@b.c"], "username": "u"}, "username"),
        ({"kind": "email", "host": "x.example:25", "from": "a@b.c", "to": ["a@b.c"]}, "host"),
        ({"kind": "email", "host": "x.example/path", "from": "a@b.c", "to": ["a@b.c"]}, "host"),
        ({"kind": "pager", "url": "https://x.example/"}, "kind"),
        ({"kind": "slack", "url": "https://x.example/", "calendar": "c"}, "calendar"),
    ],
)
async def test_a_wrong_field_of_a_channel_is_named(url: str, body: dict[str, Any], field: str) -> None:
    async with harness.node(url) as api:
        refused = await api("POST", CHANNELS, {"name": "ops", **body})
        assert (refused.status, refused.json["errors"][0]["field"]) == (422, field)


async def test_a_channel_in_use_is_not_deleted_and_a_rule_names_channels_that_exist(url: str) -> None:
    async with harness.node(url) as api:
        body = {"name": "watch", "kind": "INSTANCE_DEAD", "channels": ["ops"]}
        assert (await api("POST", RULES, body)).json["errors"][0]["field"] == "channels"
        await channel(api, "http://127.0.0.1:9/hook")
        await rule(api, "INSTANCE_DEAD")
        assert (
            await api("POST", CHANNELS, {"name": "ops", "kind": "slack", "url": "http://127.0.0.1:9/"})
        ).status == 409
        assert (await api("POST", RULES, body)).status == 409
        refused = await api("DELETE", f"{CHANNELS}/ops")
        assert (refused.status, refused.json["detail"]) == (409, "The channel 'ops' is used by the rule 'watch'.")
        assert (await api("DELETE", f"{RULES}/watch", If_Match='"2"')).status == 412
        assert (await api("DELETE", f"{RULES}/watch")).status == 204
        assert (await api("DELETE", f"{CHANNELS}/ops")).status == 204
        assert (await api("GET", f"{CHANNELS}/ops")).status == 404
        assert (await api("GET", f"{RULES}/watch")).status == 404


async def test_the_platform_and_each_tenant_have_their_own_channels_and_rules(url: str) -> None:
    async with harness.node(url) as api:
        root = await holder(api, "platform-admin")
        admin = await holder(root, "admin", "default")
        viewer = await holder(root, "viewer", "default")
        assert (await root("POST", "/api/v1/tenants", {"name": "shop"})).status == 201
        other = await holder(root, "admin", "shop")
        unsigned = await root("POST", CHANNELS, {"name": "ops", "kind": "webhook", "url": "http://x.example/"})
        assert unsigned.json["errors"][0]["field"] == "secret"
        for each in (root, admin, other):
            assert (
                await each("POST", CHANNELS, {"name": "ops", "kind": "slack", "url": "http://x.example/"})
            ).status == 201
            assert [row["name"] for row in (await each("GET", CHANNELS)).json["items"]] == ["ops"]
        body = {"name": "burn", "kind": "BUDGET_BURN", "channels": ["ops"]}
        assert (await admin("POST", RULES, body)).status == 403
        assert (await viewer("POST", RULES, {**body, "kind": "MODE_ENTERED"})).status == 403
        assert (await root("POST", RULES, {**body, "kind": "INSTANCE_DEAD"})).status == 422
        assert (await root("POST", RULES, body)).status == 201
        assert (await other("POST", RULES, {**body, "kind": "MODE_ENTERED"})).status == 201
        assert (await admin("GET", f"{RULES}/burn")).status == 404
        assert (await admin("GET", RULES)).json["items"] == []
        assert (await viewer("GET", "/api/v1/alerts")).status == 200
        assert (await viewer("POST", "/api/v1/alerts/silences", {"lasts": "1h"})).status == 403


async def test_a_calendar_is_refused_until_rules_have_calendars(url: str) -> None:
    async with harness.node(url) as api:
        await channel(api, "http://127.0.0.1:9/hook")
        body = {"name": "a", "kind": "NOT_SUCCESS_BY", "job": "j", "by": "06:00", "channels": ["ops"], "calendar": "cn"}
        refused = await api("POST", RULES, body)
        assert (refused.status, refused.json["errors"][0]["field"]) == (422, "calendar")


async def test_secrets_of_channels_from_before_there_was_a_key_are_sealed_and_still_sent(
    url: str, connection: Superuser
) -> None:
    async with Receiver() as receiver:
        async with harness.node(url, **QUICK) as api:
            await channel(api, receiver.url("/hook-canary"))
            await rule(api, "INSTANCE_DEAD")
        stored = "select config::text from horai.alert_channel"
        assert "canary" in await connection.fetchval(stored)
        async with harness.node(url, encryption_keys=(SOME_KEY,), **QUICK) as api:
            async with asyncio.timeout(30):
                while "canary" in await connection.fetchval(stored):
                    await asyncio.sleep(0.02)
            assert (await tried(api))["status"] == "DELIVERED"
            assert [hit.path for hit in receiver.hits] == ["/hook-canary"]
