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
from horai.core.callbacks import (
    KEPT_OF_FAILURE,
    TRUNCATED,
    Answer,
    body_of,
    check_headers,
    check_target,
    check_url,
    clean_text,
    header_text,
    headers_of,
    outcome_of,
    output_text,
    verify,
)
from horai.core.calls import Call, HttpTarget
from horai.core.outcome import (
    MESSAGE_LIMIT,
    RESULT_LIMIT,
    Accepted,
    FailedRetryable,
    FailedUnrecoverable,
    Outcome,
    Succeeded,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
REMAINING = timedelta(seconds=3)
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


def answered(status: int = 200, body: object = None, fault: str | None = None, **headers: str) -> Outcome | Accepted:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return outcome_of(Answer(status, named, raw, fault), NOW, REMAINING)


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


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_B13_a_2xx_is_a_success(status: int):
    assert answered(status, b"") == Succeeded()


@pytest.mark.parametrize("body", [b"ok", b"<html>", b'{"result": "FAIL_RETRYABLE"}', b"{", b"\xff"])
@pytest.mark.parametrize("kind", ["text/plain", "text/html; charset=utf-8", "", "application/jsonl"])
def test_a_2xx_without_a_json_content_type_is_a_success_without_a_result(body: bytes, kind: str):
    assert answered(200, body, Content_Type=kind) == Succeeded()
    assert answered(200, body, fault="broke off", Content_Type=kind) == Succeeded()


@pytest.mark.parametrize("body", [b"[1]", b'"FAIL_RETRYABLE"', b"7", b"null", b"{}", b" "])
def test_a_json_body_that_is_not_an_object_or_is_empty_carries_no_result(body: bytes):
    assert answered(200, body) == Succeeded()


@pytest.mark.parametrize(
    ("body", "more", "says"),
    [
        (b"{", {}, "is not valid JSON"),
        (b"\xff", {}, "is not valid JSON"),
        (b"[" * 100_000, {}, "is not valid JSON"),
        (b"\x1f\x8b", {"Content_Encoding": "gzip"}, "is encoded as gzip"),
        (b'{"result": "FAIL', {"fault": "broke off"}, "broke off"),
        (b"{", {"fault": "is longer than 256 kB"}, "is longer than 256 kB"),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "application/problem+json; charset=utf-8"])
def test_a_json_body_that_cannot_be_read_fails_the_attempt(body: bytes, more: dict[str, str], says: str, kind: str):
    outcome = answered(200, body, Content_Type=kind, **more)

    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "ANSWER_UNREADABLE"
    assert says in outcome.message


def test_the_json_object_of_a_success_is_its_result_and_output_is_the_explicit_form():
    assert answered(200, {"rows": 3, "ok": True}) == Succeeded('{"rows": 3, "ok": true}')
    assert answered(200, {"rows": 3, "output": [1]}) == Succeeded("[1]")
    assert answered(200, {"rows": 3, "output": None}) == Succeeded()
    assert answered(201, b'{"rows": 3}', Content_Encoding="identity") == Succeeded('{"rows": 3}')


def test_a_failing_response_is_kept_up_to_4_kb():
    plain = answered(500, b"\x1bTraceback: " + b"x" * 10_000, Content_Type="text/plain")
    assert isinstance(plain, FailedRetryable)
    head, _, body = plain.message.partition("\n")
    assert head == "the target answered 500 Internal Server Error"
    assert body.startswith("Traceback: xxx")
    assert len(body) <= KEPT_OF_FAILURE
    packed = answered(500, b"\x1f\x8b", Content_Encoding="gzip")
    assert isinstance(packed, FailedRetryable)
    assert packed.message == "the target answered 500 Internal Server Error"


def test_B13_an_explicit_result_in_the_body_decides():
    assert answered(200, {"result": "SUCCESS", "output": {"rows": 3}}) == Succeeded('{"rows": 3}')
    assert answered(200, {"result": "FAIL_RETRYABLE", "message": "locked"}) == FailedRetryable(
        "RESULT_RETRYABLE", "locked"
    )
    assert answered(200, {"result": "FAIL_UNRECOVERABLE", "message": "gone"}) == FailedUnrecoverable(
        "RESULT_UNRECOVERABLE", "gone"
    )
    assert answered(200, {"result": "FAIL_RETRYABLE"}) == FailedRetryable(
        "RESULT_RETRYABLE", "the target answered FAIL_RETRYABLE"
    )
    assert isinstance(answered(200, b'{"result": "FAIL_RETRYABLE", "x": NaN}'), FailedRetryable)


def test_an_unknown_result_is_a_failure_only_when_it_says_fail():
    assert answered(200, {"result": "FAILED"}) == FailedRetryable("RESULT_RETRYABLE", "the target answered FAILED")
    assert answered(200, {"result": "OK"}) == Succeeded('{"result": "OK"}')
    assert answered(200, {"result": 42}) == Succeeded('{"result": 42}')


def test_a_202_is_accepted_unless_its_body_already_says_the_result():
    assert answered(202, b"") == Accepted(REMAINING)
    assert answered(202, {"status": "queued"}) == Accepted(REMAINING)
    assert answered(202, {"result": "SUCCESS"}) == Succeeded('{"result": "SUCCESS"}')
    assert isinstance(answered(202, {"result": "FAIL_UNRECOVERABLE"}), FailedUnrecoverable)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_a_passing_trouble_is_retryable(status: int):
    outcome = answered(status, b"")

    assert isinstance(outcome, FailedRetryable)
    assert outcome.code == f"HTTP_{status}"
    assert str(status) in outcome.message


@pytest.mark.parametrize("status", [101, 301, 302, 307, 308, 400, 401, 403, 404, 409, 410, 422, 600, 999])
def test_every_other_status_is_unrecoverable(status: int):
    outcome = answered(status, {"result": "SUCCESS", "message": "what is wrong"})

    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == f"HTTP_{status}"
    head, _, body = outcome.message.partition("\n")
    assert head.endswith(": what is wrong")
    assert json.loads(body) == {"result": "SUCCESS", "message": "what is wrong"}


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("0", timedelta(0)),
        ("120", timedelta(minutes=2)),
        ("999999999999", timedelta(hours=24)),
        ("Fri, 02 Jan 2026 03:05:05 GMT", timedelta(seconds=59, microseconds=321_100)),
        ("Fri, 02 Jan 2026 03:05:05 -0000", timedelta(seconds=59, microseconds=321_100)),
        ("Fri, 02 Jan 1970 00:00:00 GMT", timedelta(0)),
        ("Fri, 02 Jan 2099 00:00:00 GMT", timedelta(hours=24)),
        ("-1", None),
        ("soon", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 5_000, None),
        ("Fri, 99 Jan 2026 03:05:05 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_honoured_in_both_forms_up_to_a_day(text: str, wait: timedelta | None):
    outcome = answered(503, b"", retry_AFTER=text)

    assert isinstance(outcome, FailedRetryable)
    assert outcome.retry_after == wait


def test_a_result_that_cannot_be_kept_is_marked_and_the_attempt_still_succeeded():
    assert answered(200, {"output": "x" * RESULT_LIMIT}) == Succeeded(TRUNCATED)
    assert answered(200, {"rows": "é" * (RESULT_LIMIT // 2)}) == Succeeded(TRUNCATED)
    for bad in (b"NaN", b"1e999", b"-Infinity", rb'"a\u0000b"', rb'{"a\u0000": 1}', rb'"\ud800"', rb'["\\\u0000"]'):
        assert answered(200, b'{"output": ' + bad + b"}") == Succeeded(TRUNCATED)


def test_an_output_that_only_looks_like_nul_is_kept():
    assert output_text("\\u0000") == r'"\\u0000"'
    assert output_text("é") == '"é"'
    assert output_text(None) is None
    assert output_text(False) == "false"


@given(st.text(st.characters()))
def test_clean_text_fits_a_text_column(text: str):
    cleaned = clean_text(text * 50)

    cleaned.encode()
    assert len(cleaned) <= MESSAGE_LIMIT
    assert not any(c < " " and c not in "\t\n" for c in cleaned)


def test_messages_are_cleaned():
    outcome = answered(200, rb'{"result": "FAIL_RETRYABLE", "message": "a\u0000b\ud800\u001b[31m"}')

    assert outcome == FailedRetryable("RESULT_RETRYABLE", "ab�[31m")
