"""The outcome of an attempt, from the answer of its target."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.callbacks import KEPT_OF_FAILURE, Answer, outcome_of, output_text
from horai.core.limits import MESSAGE_LIMIT, RESULT_LIMIT
from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, Outcome, Succeeded
from horai.core.stored_text import TRUNCATED, clean_text

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
REMAINING = timedelta(seconds=3)


def answered(status: int = 200, body: object = None, fault: str | None = None, **headers: str) -> Outcome | Accepted:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return outcome_of(Answer(status, named, raw, fault), NOW, REMAINING)


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
