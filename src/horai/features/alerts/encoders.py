"""The requests of each kind of channel: bodies, signatures, and the meaning of an answer. Pure.

Every value of a user is escaped for the syntax of its channel, so that the name of a job mentions no person and breaks
no message.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, cast
from urllib.parse import quote

import horai
from horai.core.callbacks import rfc3339, sign
from horai.features.alerts.templates import LISTED, plain, render

WECOM_BYTES = 2_000
"""WeCom refuses a text of more than 2,048 bytes."""
TEXT_LIMIT = 8_000
"""Characters of a text, below the limit of every other channel."""
_WIDE = str.maketrans({"<": "\uff1c", ">": "\uff1e", "@": "\uff20"})
"""Characters that begin a mention, and their full-width forms, which do not."""
_SLACK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A POST with a JSON body. The URL may be a secret: it is not in the repr."""

    url: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"HttpRequest({len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class Sending:
    """A delivery to encode: its id for receivers, the facts, the language, and the secrets of the tenant."""

    id: str
    message: Mapping[str, Any]
    language: str
    config: Mapping[str, Any]
    secrets: Sequence[str]
    now: datetime

    def __repr__(self) -> str:
        return f"Sending({self.id!r})"


def http_request(kind: str, sending: Sending) -> HttpRequest:
    """Return the request of a channel that is called over HTTP."""
    return _ENCODERS[kind](sending)


def payload_of(sending: Sending) -> dict[str, Any]:
    """Return the body of a webhook. `alert.schema.json` describes it."""
    message, text = sending.message, render(sending.message, sending.language)
    return {
        "id": sending.id,
        "type": f"horai.alert.{message['kind'].lower()}",
        "time": message["time"],
        "tenant": message["tenant"],
        "rule": message["rule"],
        "title": text.title,
        "text": "\n".join(text.lines),
        "count": message["count"],
        "alerts": message["alerts"][:LISTED],
        "link": message["link"],
    }


def _webhook(sending: Sending) -> HttpRequest:
    """Sign according to Standard Webhooks, with the secret of the channel or with those of the tenant."""
    body = json.dumps(payload_of(sending), ensure_ascii=False).encode()
    timestamp = str(int(sending.now.timestamp()))
    own = sending.config.get("secret")
    secrets = [own] if own else sending.secrets
    headers = {
        "webhook-id": sending.id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(sign(secret, sending.id, timestamp, body) for secret in secrets),
    }
    return HttpRequest(sending.config["url"], _json_headers() | headers, body)


def _slack(sending: Sending) -> HttpRequest:
    text = "".join(_SLACK.get(letter, letter) for letter in render(sending.message, sending.language).text[:TEXT_LIMIT])
    return _posted(sending.config["url"], {"text": text, "mrkdwn": False, "unfurl_links": False})


def _feishu(sending: Sending) -> HttpRequest:
    text = render(sending.message, sending.language).text[:TEXT_LIMIT].translate(_WIDE)
    body: dict[str, Any] = {"msg_type": "text", "content": {"text": text}}
    if secret := sending.config.get("secret"):
        timestamp = str(int(sending.now.timestamp()))
        digest = hmac.digest(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256)
        body = {"timestamp": timestamp, "sign": base64.b64encode(digest).decode(), **body}
    return _posted(sending.config["url"], body)


def _dingtalk(sending: Sending) -> HttpRequest:
    text = render(sending.message, sending.language).text[:TEXT_LIMIT].translate(_WIDE)
    url = sending.config["url"]
    if secret := sending.config.get("secret"):
        timestamp = str(int(sending.now.timestamp() * 1000))
        digest = hmac.digest(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256)
        url += f"{'&' if '?' in url else '?'}timestamp={timestamp}&sign={quote(base64.b64encode(digest).decode(), safe='')}"
    return _posted(url, {"msgtype": "text", "text": {"content": text}, "at": {"isAtAll": False}})


def _wecom(sending: Sending) -> HttpRequest:
    text = render(sending.message, sending.language).text.translate(_WIDE)
    short = text.encode()[:WECOM_BYTES].decode(errors="ignore")
    return _posted(sending.config["url"], {"msgtype": "text", "text": {"content": short}})


def _posted(url: str, body: Mapping[str, Any]) -> HttpRequest:
    return HttpRequest(url, _json_headers(), json.dumps(body, ensure_ascii=False).encode())


def _json_headers() -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "User-Agent": f"Horai/{horai.__version__}",
        "Accept-Encoding": "identity",
    }


_ENCODERS = {"webhook": _webhook, "slack": _slack, "feishu": _feishu, "dingtalk": _dingtalk, "wecom": _wecom}


def email_of(sending: Sending) -> EmailMessage:
    """Return the mail of a delivery. Every try has the same Message-ID."""
    text = render(sending.message, sending.language)
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = plain(text.title)
    mail["From"] = sending.config["from"]
    mail["To"] = ", ".join(sending.config["to"])
    mail["Date"] = format_datetime(sending.now)
    mail["Message-ID"] = f"<{sending.id}@{sending.config['from'].rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("\n".join(text.lines) + "\n")
    return mail


def fault_in(kind: str, status: int, body: bytes) -> str | None:
    """Return why an answer is a failure; None if the channel has taken the message.

    Feishu, DingTalk and WeCom answer 200 also for a message that they refuse: their body has a code other than 0.
    """
    if not 200 <= status < 300:
        return f"HTTP {status}"
    names = {"feishu": ("code", "StatusCode"), "dingtalk": ("errcode",), "wecom": ("errcode",)}.get(kind)
    if names is None:
        return None
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "the answer is not JSON"
    if not isinstance(said, dict):
        return "the answer is not a JSON object"
    answer = cast("dict[str, Any]", said)
    code = next((answer[name] for name in names if name in answer), None)
    return None if code == 0 else f"the service answered with the code {plain(code)}"


def message_of(
    kind: str, rule: Mapping[str, Any], tenant: str | None, alerts: Sequence[Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """Return the facts of a notification: `more` has its time, its link and the number of alerts if they are not all listed."""
    facts = {"kind": kind, "rule": dict(rule), "tenant": tenant, "alerts": list(alerts), "count": len(alerts)}
    return {**facts, "link": None, **more}


def alert_facts(alert: Any) -> dict[str, Any]:
    """Return an alert as notifications and webhooks name it."""
    ended = alert.resolved_at
    return {
        "id": str(alert.id),
        "object": alert.object,
        "job": alert.job,
        "since": rfc3339(alert.since),
        "resolvedAt": None if ended is None else rfc3339(ended),
        "data": dict(alert.data),
    }
