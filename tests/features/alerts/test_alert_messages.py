"""Texts in both languages, and the exact requests of each kind of channel. Hostile names mention and break nothing."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from horai.core.callbacks import new_signing_secret, verify
from horai.features.alerts.encoders import Sending, email_of, fault_in, http_request
from horai.features.alerts.rules import RuleKind
from horai.features.alerts.templates import COMMANDS, LINES, TITLES, render

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOSTILE = '<!channel> <at user_id="all"> @all <@U1> "} \\ \n\r\nBcc: x@evil.example {job} \u202e'
SECRET = new_signing_secret()


def message(count: int = 1, **data: Any) -> dict[str, Any]:
    facts = {"job": "publish", "instance": "7", "errorCode": "HTTP_400", **data}
    alert = {"id": "1", "object": "7", "job": "publish", "since": "2026-11-17T11:59:00.000Z", "resolvedAt": None}
    return {
        "kind": "FIRING",
        "rule": {"name": "dead", "kind": "INSTANCE_DEAD"},
        "tenant": "default",
        "time": "2026-11-17T12:00:00.000Z",
        "count": count,
        "alerts": [{**alert, "data": facts}] * min(count, 10),
        "link": "https://horai.example/dead-letters",
    }


def request(kind: str, facts: dict[str, Any], language: str = "en", **config: Any) -> Any:
    config = {"url": "https://hooks.example/x?key=1", **config}
    return http_request(kind, Sending("alert_1", facts, language, config, [SECRET], NOW))


def test_a_text_says_what_happened_to_what_since_when_and_what_to_do_in_both_languages() -> None:
    assert render(message(), "en").text.splitlines() == [
        "[Firing] Instances died",
        "- job publish, instance 7: HTTP_400, since 2026-11-17 11:59:00 UTC",
        "Rule: dead",
        "Tenant: default",
        "What to do: horai dlq list",
        "https://horai.example/dead-letters",
    ]
    assert render(message(12), "zh-CN").text.splitlines()[:2] == [
        "[告警] 实例已死亡 (12)",
        "- 作业 publish，实例 7：HTTP_400, 开始于 2026-11-17 11:59:00 UTC",
    ]
    assert "另有 2 条" in render(message(12), "zh-CN").lines


@pytest.mark.parametrize(
    ("known", "english", "chinese"),
    [
        ({"p95": "1s", "longest": None}, "95 % of runs end within 1s", "95 % 的运行耗时不超过 1s"),
        ({"p95": "1s"}, "95 % of runs end within 1s", "95 % 的运行耗时不超过 1s"),
        ({"p95": None, "longest": "2m"}, "the longest of few known successes took 2m", "已知的少数几次成功运行中最长耗时为 2m"),
        ({"p95": None, "longest": None}, "no usual duration is known", "通常耗时未知"),
    ],
)  # fmt: skip
def test_a_stuck_run_is_told_with_what_is_known_of_its_usual_duration(
    known: dict[str, Any], english: str, chinese: str
) -> None:
    facts = message(startedAt="2026-11-17T11:00:00.000Z", **known)
    facts["rule"]["kind"] = "RUN_STUCK"
    assert english in render(facts, "en").text
    assert chinese in render(facts, "zh-CN").text


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_every_kind_has_a_text_in_every_language(language: str) -> None:
    assert set(TITLES[language]) == set(LINES[language]) == set(COMMANDS) == {*RuleKind, "TEST"}


def test_a_webhook_is_signed_and_names_its_delivery() -> None:
    made = request("webhook", message())
    assert verify(SECRET, made.headers, made.body, NOW)
    assert made.headers["webhook-id"] == json.loads(made.body)["id"] == "alert_1"
    own = new_signing_secret()
    assert verify(own, (signed := request("webhook", message(), secret=own)).headers, signed.body, NOW)
    assert not verify(SECRET, signed.headers, signed.body, NOW)


def test_the_bodies_of_chat_channels_are_those_of_their_services() -> None:
    text = render(message(), "en").text
    assert json.loads(request("slack", message()).body) == {"text": text, "mrkdwn": False, "unfurl_links": False}
    assert json.loads(request("feishu", message()).body) == {"msg_type": "text", "content": {"text": text}}
    at = {"isAtAll": False}
    assert json.loads(request("dingtalk", message()).body) == {"msgtype": "text", "text": {"content": text}, "at": at}
    assert json.loads(request("wecom", message()).body) == {"msgtype": "text", "text": {"content": text}}


def test_feishu_and_dingtalk_are_signed_as_their_robots_ask_for_it() -> None:
    body = json.loads(request("feishu", message(), secret="s").body)
    expected = hmac.new(f"{body['timestamp']}\ns".encode(), b"", hashlib.sha256).digest()
    assert (body["timestamp"], body["sign"]) == (str(int(NOW.timestamp())), base64.b64encode(expected).decode())
    asked = parse_qs(urlsplit(request("dingtalk", message(), secret="s").url).query)
    millis = str(int(NOW.timestamp() * 1000))
    expected = hmac.new(b"s", f"{millis}\ns".encode(), hashlib.sha256).digest()
    assert (asked["key"], asked["timestamp"], asked["sign"]) == (["1"], [millis], [base64.b64encode(expected).decode()])


@pytest.mark.parametrize("kind", ["slack", "feishu", "dingtalk", "wecom"])
def test_a_hostile_name_mentions_no_person_and_adds_no_line(kind: str) -> None:
    body = json.loads(request(kind, message(job=HOSTILE)).body)
    text: Any = body.get("text", body.get("content"))
    text = text if isinstance(text, str) else (text.get("content") or text["text"])
    assert "<" not in text
    assert ">" not in text
    assert kind == "slack" or "@" not in text
    assert len(text.splitlines()) == len(render(message(), "en").text.splitlines())
    assert "\u202e" not in text


def test_a_hostile_name_adds_no_header_to_a_mail() -> None:
    config = {"from": "horai@example.com", "to": ["ops@example.com"]}
    facts = message(job=HOSTILE)
    facts["rule"]["name"] = HOSTILE
    mail = email_of(Sending("alert_1", facts, "en", config, [], NOW))
    assert mail["Bcc"] is None
    assert mail["Subject"] == "[Firing] Instances died"
    assert mail["Message-ID"] == "<alert_1@example.com>"


def test_a_text_for_wecom_ends_before_its_limit_at_a_whole_character() -> None:
    facts = message(10, job="作" * 190)
    content = json.loads(request("wecom", facts, "zh-CN").body)["text"]["content"]
    assert 1_900 < len(content.encode()) <= 2_000


@pytest.mark.parametrize(
    ("kind", "status", "body", "is_taken"),
    [
        ("webhook", 204, b"", True),
        ("webhook", 302, b"", False),
        ("slack", 200, b"ok", True),
        ("slack", 404, b"no_team", False),
        ("feishu", 200, b'{"code": 0}', True),
        ("feishu", 200, b'{"StatusCode": 0}', True),
        ("feishu", 200, b'{"code": 19021}', False),
        ("dingtalk", 200, b'{"errcode": 310000}', False),
        ("dingtalk", 200, b'{"errcode": 0}', True),
        ("wecom", 200, b"not json", False),
        ("wecom", 200, b"[]", False),
        ("wecom", 200, b"{}", False),
    ],
)
def test_an_answer_with_a_code_of_failure_is_a_failure(kind: str, status: int, body: bytes, is_taken: bool) -> None:
    assert (fault_in(kind, status, body) is None) == is_taken
