"""The call to a target: body, headers and signature, and the targets that are refused."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai import verify_webhook
from horai.core.callbacks import body_of, header_text, headers_of, verify
from horai.core.calls import Call, HttpTarget
from horai.core.target_checks import check_headers, check_target, check_url

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(b"a secret of the tenant").decode()
CALL = Call(
    instance_id=9_007_199_254_740_993,
    job_id=7,
    job="publish",
    tenant="acme",
    key="article:42",
    fire_time=NOW,
    execute_time=NOW.astimezone(timezone(timedelta(hours=8))),
    attempt=2,
    fence=5,
    born_for=NOW,
    slot=0,
    payload='{"n": 1.10, "text": "é"}',
    target=HttpTarget("https://example.com/hook"),
    timeout=None,
    secrets=(SECRET,),
)


def test_the_body_says_which_instance_this_is_and_carries_the_payload_unparsed():
    body = body_of(CALL)

    assert json.loads(body) == {
        "job": "publish",
        "jobId": "7",
        "instanceId": "9007199254740993",
        "key": "article:42",
        "fireTime": "2026-01-02T03:04:05.678Z",
        "executeTime": "2026-01-02T03:04:05.678Z",
        "attempt": 2,
        "payload": {"n": 1.10, "text": "é"},
    }
    assert CALL.payload is not None
    assert CALL.payload.encode() in body


def test_a_body_without_key_and_payload_says_null():
    said = json.loads(body_of(CALL._replace(key=None, payload=None)))

    assert said["key"] is None
    assert said["payload"] is None


def test_C27_the_keys_of_instance_and_unit_are_delivered_in_headers():
    headers = headers_of(CALL, b"", NOW)

    assert headers["Idempotency-Key"] == "7:1767323045678"
    assert headers["Horai-Unit"] == "acme:publish:article:42"
    assert headers["Horai-Attempt"] == "2"
    assert headers["Horai-Fence"] == "5"
    assert headers["Horai-Fire-Time"] == "2026-01-02T03:04:05.678Z"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("Horai/")


@pytest.mark.parametrize(
    "own", [{}, {"traceparent": "theirs"}, {"TraceParent": "a", "TRACEPARENT": "b", "Tracestate": "c"}]
)
def test_a_traced_call_has_one_traceparent_which_no_header_of_the_target_replaces(own: dict[str, str]) -> None:
    target = HttpTarget("https://shop.example.com/", headers={"X-Own": "kept", **own})
    headers = headers_of(CALL._replace(target=target, traceparent="00-1-2-01"), b"", NOW)

    assert [(name, value) for name, value in headers.items() if name.lower().startswith("trace")] == [("traceparent", "00-1-2-01")]  # fmt: skip
    assert headers["X-Own"] == "kept"


def test_a_call_without_a_trace_sends_the_headers_of_its_target_unchanged() -> None:
    target = HttpTarget("https://shop.example.com/", headers={"TraceParent": "theirs"})

    assert headers_of(CALL._replace(target=target), b"", NOW)["TraceParent"] == "theirs"
    assert "traceparent" not in headers_of(CALL, b"", NOW)


def test_B19_every_try_of_an_instance_carries_the_same_token():
    first = headers_of(CALL, body_of(CALL), NOW)
    later = CALL._replace(attempt=3, fence=9, execute_time=NOW + timedelta(hours=1))
    third = headers_of(later, body_of(later), NOW + timedelta(hours=1))

    for name in ("Idempotency-Key", "Horai-Unit", "webhook-id"):
        assert first[name] == third[name]
    assert first["webhook-signature"] != third["webhook-signature"]


def test_the_signature_is_that_of_standard_webhooks():
    """The example of the specification's reference libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330"}
    signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    at = datetime.fromtimestamp(1614265330, UTC)

    assert verify(secret, headers | {"webhook-signature": signature}, b'{"test": 2432232314}', at)


def test_each_secret_signs_so_that_either_may_be_rotated_out():
    other = "whsec_" + base64.b64encode(b"the next secret").decode()
    body = body_of(CALL)
    headers = headers_of(CALL._replace(secrets=(SECRET, other)), body, NOW)

    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(b"a secret of the tenant", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"].split(" ")[0] == "v1," + base64.b64encode(digest).decode()
    assert verify(SECRET, headers, body, NOW)
    assert verify(other, headers, body, NOW)
    assert not verify("whsec_" + base64.b64encode(b"neither").decode(), headers, body, NOW)
    assert not verify(SECRET, headers, body + b" ", NOW)
    assert not verify(SECRET, headers, body, NOW + timedelta(minutes=6))
    assert not verify(SECRET, {}, body, NOW)


def test_S5_a_call_without_a_secret_gets_no_headers():
    with pytest.raises(ValueError, match="without a signing secret"):
        headers_of(CALL._replace(secrets=()), b"", NOW)


def test_S5_receivers_verify_with_any_of_their_secrets_within_the_tolerance_on_both_sides():
    body = b'{"a": 1}'
    headers = headers_of(CALL, body, NOW)
    other = "whsec_" + base64.b64encode(b"neither").decode()
    assert verify_webhook(SECRET, headers, body, now=NOW)
    assert verify_webhook([other, SECRET], headers, body, now=NOW)
    assert not verify_webhook([other], headers, body, now=NOW)
    assert not verify_webhook([], headers, body, now=NOW)
    assert not verify_webhook(SECRET, headers, body)
    for ahead, is_taken in ((-301, False), (-299, True), (299, True), (301, False)):
        assert verify_webhook(SECRET, headers, body, now=NOW + timedelta(seconds=ahead)) == is_taken
    assert verify_webhook(SECRET, headers, body, now=NOW + timedelta(hours=1), tolerance=timedelta(hours=2))


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", ["", "\udcff", "é", "v1,", "9" * 400, "-1", "１"])
def test_S5_nothing_in_a_request_makes_the_verification_raise(name: str, value: str):
    headers = {**headers_of(CALL, b"", NOW), name: value}
    assert not verify_webhook(SECRET, headers, b"", now=NOW)


def test_a_secret_that_is_none_is_refused_without_being_repeated():
    for broken in ("hunter2", "whsec_hunter2!"):
        with pytest.raises(ValueError, match=r"^(?!.*hunter2)"):
            headers_of(CALL._replace(secrets=(broken,)), b"", NOW)


def test_a_target_adds_headers_but_overrides_none_of_ours():
    theirs = {"Authorization": "Bearer x", "idempotency-KEY": "mine", "HOST": "evil", "Horai-Fence": "0", "TE": "x"}

    headers = headers_of(CALL._replace(target=HttpTarget("https://example.com", headers=theirs)), b"", NOW)

    assert headers["Authorization"] == "Bearer x"
    assert headers["Idempotency-Key"] == "7:1767323045678"
    assert headers["Horai-Fence"] == "5"
    assert {"idempotency-KEY", "HOST", "TE"}.isdisjoint(headers)


@given(st.text())
def test_any_key_fits_a_header_and_can_be_read_back(key: str):
    text = header_text(key)

    assert text.isascii()
    assert not text or text.isprintable()
    assert unquote(text, errors="surrogatepass") == key


def test_a_usual_key_stays_readable():
    headers = headers_of(CALL._replace(key="a/b_c-d@e.f+1"), b"", NOW)

    assert headers["Horai-Unit"] == "acme:publish:a/b_c-d@e.f+1"


@given(st.datetimes(timezones=st.just(UTC)), st.integers(-(2**63), 2**63 - 1))
def test_the_signed_id_has_no_dot(born_for: datetime, slot: int):
    """One would end it in the signed text."""
    headers = headers_of(CALL._replace(born_for=born_for, slot=slot), b"", NOW)

    assert "." not in headers["webhook-id"]
    assert headers["Idempotency-Key"] == headers["webhook-id"]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "1\r\nX-B: 2"},
        {"X-A": "1\n"},
        {"X-A": "\x00"},
        {"X-A": "é"},
        {"X A": "1"},
        {"": "1"},
        {"X-A\n": "1"},
        {"Host": "evil"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Proxy-Authorization": "x"},
        {"IDEMPOTENCY-KEY": "x"},
        {"Webhook-Signature": "x"},
        {"X-A": "x" * 9_000},
    ],
)
def test_a_header_that_is_reserved_or_cannot_be_sent_is_refused(headers: dict[str, str]):
    with pytest.raises(ValueError, match=r"header"):
        check_headers(headers)


def test_common_headers_pass():
    check_headers({"Authorization": "Bearer x.y", "X-Tenant": "acme", "Accept": "*/*", "Cookie": "a=b; c=d"})


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://example.com:8080/a/b?c=d&e=%2F#f",
        "http://127.0.0.1:1/",
        "http://[::1]:8080/",
        "http://xn--fiqs8s.example/",
        "http://my_service.internal./",
        "http://1password.example/",
    ],
)
def test_a_callable_url_passes(url: str):
    check_url(url)


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("ftp://example.com/", "http://"),
        ("file:///etc/passwd", "http://"),
        ("example.com", "http://"),
        ("http:///path", "host"),
        ("http://", "host"),
        ("http://user:hunter2@example.com/", "header"),
        ("http://@example.com/", "header"),
        ("http://example.com:99999/", "host:port"),
        ("http://example.com:x/", "host:port"),
        ("http://example.com:0/", "port 0"),
        ("http://example.com/a b", "percent-encode"),
        ("http://example.com/\r\nX: y", "percent-encode"),
        ("http://例え.jp/", "xn--"),
        ("http://evil\\@127.0.0.1/", "ASCII"),
        ("http://[::1", "host"),
        ("http://[fe80::1%25eth0]/", "host"),
        ("http://127.1/", "four numbers"),
        ("http://2130706433/", "four numbers"),
        ("http://0x7f.0.0.1/", "four numbers"),
        ("http://0x7f000001/", "four numbers"),
        ("http://0177.0.0.1/", "four numbers"),
        ("http://127.0.0.1./", "four numbers"),
        ("http://a..b/", "host"),
        (f"http://{'a' * 64}.example/", "host"),
        ("http://example.com/" + "a" * 2_000, "2000"),
    ],
)
def test_a_url_that_cannot_be_called_is_refused_with_a_hint(url: str, hint: str):
    with pytest.raises(ValueError, match=hint) as refusal:
        check_url(url)
    assert "hunter2" not in str(refusal.value)


def test_a_target_is_checked_as_a_whole():
    check_target(HttpTarget("https://example.com", "PUT", {"X-A": "1"}))
    with pytest.raises(ValueError, match="method must be one of POST"):
        check_target(HttpTarget("https://example.com", "CONNECT"))
