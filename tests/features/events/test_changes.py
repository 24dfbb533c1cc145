"""Changes as events tell them: one meaning in three forms, and a reason for everything that is none."""

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.limits import BODY_LIMIT, PAYLOAD_LIMIT
from horai.features.events.change import Change, parse_change
from horai.features.events.cloudevents import Poison

AT = datetime(2030, 1, 1, 1, tzinfo=UTC)
MOVE = {"job": "publish", "key": "article:42", "executeTime": "2030-01-01T09:00:00+08:00"}
CLOUD = {"specversion": "1.0", "id": "e-1", "source": "/articles", "type": "article.publish_time_changed"}


def read(document: Any, **headers: str) -> Change:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return parse_change(document if isinstance(document, bytes) else json.dumps(document).encode(), named)


def reason(document: Any, **headers: str) -> str:
    with pytest.raises(Poison) as refused:
        read(document, **headers)
    return refused.value.reason


def test_A3_a_document_says_which_key_is_wanted_when() -> None:
    assert read(MOVE) == Change("publish", "article:42", AT)


def test_a_cancel_has_no_time() -> None:
    assert read({"key": "a", "cancel": True, "version": 3}).execute_time is None


def test_a_payload_is_kept_to_the_letter() -> None:
    body = b'{"key": "a", "executeTime": "2030-01-01T01:00:00Z", "payload": {"price": 1.10, "n": 1e3}}'

    assert read(body).payload == '{"price": 1.10, "n": 1e3}'


def test_a_structured_cloud_event_means_what_its_data_says() -> None:
    found = read({**CLOUD, "time": "2029-12-31T00:00:00Z", "tenant": "extension", "data": {**MOVE, "payload": 1.10}})

    assert (found.key, found.execute_time, found.payload) == ("article:42", AT, "1.1")
    assert (found.event_id, found.occurred_at) == ("ce:/articles e-1", datetime(2029, 12, 31, tzinfo=UTC))


def test_the_data_of_a_structured_cloud_event_may_come_in_base64() -> None:
    data = base64.b64encode(json.dumps(MOVE).encode()).decode()

    assert read({**CLOUD, "data_base64": data}, content_type="application/cloudevents+json").key == "article:42"


def test_a_binary_cloud_event_has_its_attributes_in_headers() -> None:
    attributes = {f"ce_{name}": value for name, value in CLOUD.items()}

    found = read({"executeTime": MOVE["executeTime"]}, **attributes, ce_subject="article%3A42%20%C3%A9")

    assert (found.key, found.event_id) == ("article:42 é", "ce:/articles e-1")


def test_headers_are_found_however_they_are_written() -> None:
    headers = {f"Ce-{name.title()}": value for name, value in CLOUD.items()}

    assert parse_change(json.dumps(MOVE).encode(), headers).event_id == "ce:/articles e-1"


def test_an_event_is_told_from_others_by_the_most_that_is_known_of_it() -> None:
    assert read(MOVE).identity is None
    assert read({**MOVE, "version": 7}).identity == "version:7 of article:42"
    assert read({**MOVE, "version": 7}, Nats_Msg_Id="m-1").identity == "id:m-1"
    assert read({**MOVE, "id": "own"}, Nats_Msg_Id="m-1").identity == "id:own"
    assert read({**CLOUD, "data": {**MOVE, "id": "own"}}, Nats_Msg_Id="m-1").identity == "ce:/articles e-1"


def test_two_sources_may_use_the_same_id() -> None:
    here, there = ({**CLOUD, "source": source, "data": MOVE} for source in ("/here", "/there"))

    assert read(here).event_id != read(there).event_id


def test_a_long_id_is_remembered_by_its_digest() -> None:
    one, other = (read({**MOVE, "id": "x" * 5_000 + end}).event_id or "" for end in "ab")

    assert one != other
    assert len(one) < 100


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"key": "a", "key": "b"}', "occurs twice"),
        (b'{"key": "a\\u0000", "executeTime": "2030-01-01T01:00:00Z"}', "NUL"),
        (b'{"key": "\\ud800", "executeTime": "2030-01-01T01:00:00Z"}', "lone surrogate"),
        (b'{"key": NaN}', "NaN is not JSON"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
        ({"executeTime": MOVE["executeTime"]}, "key: is missing"),
        ({**MOVE, "key": 42}, "key: is not a string"),
        ({**MOVE, "key": ""}, "key: is not 1 to"),
        ({**MOVE, "key": "k" * 513}, "key: is not 1 to"),
        ({"key": "a"}, "executeTime: is missing"),
        ({"key": "a", "excuteTime": MOVE["executeTime"]}, "excuteTime: unknown field"),
        ({**MOVE, "executeTime": "2030-01-01T09:00:00"}, "with an offset"),
        ({**MOVE, "executeTime": "2030-02-30T09:00:00Z"}, "not in the calendar"),
        ({**MOVE, "executeTime": "0001-01-01T00:00:00+23:59"}, "not in the calendar"),
        ({**MOVE, "executeTime": "1969-12-31T23:59:59Z"}, "between the years"),
        ({**MOVE, "executeTime": 1893456000}, "with an offset"),
        ({**MOVE, "cancel": True}, "cannot be combined with cancel"),
        ({**MOVE, "cancel": "yes"}, "neither true nor false"),
        ({"key": "a", "cancel": True, "payload": 1}, "payload: cannot be combined with cancel"),
        ({**MOVE, "version": -1}, "version: is not a whole number"),
        ({**MOVE, "version": 2**62}, "version: is not a whole number"),
        ({**MOVE, "version": True}, "version: is not a whole number"),
        ({**MOVE, "version": 1.5}, "version: is not a whole number"),
        ({**MOVE, "job": 7}, "job: is not a string"),
        ({**MOVE, "job": "a\nb"}, "job: is not a valid job name"),
        ({**MOVE, "id": ""}, "id: is empty"),
        ({**MOVE, "payload": "x" * PAYLOAD_LIMIT}, "payload: is larger"),
        (b" " * (BODY_LIMIT + 1), "the event is larger"),
        ({**CLOUD, "specversion": "0.3", "data": MOVE}, "specversion: is not 1.0"),
        ({"specversion": "1.0", "source": "/a", "type": "t", "data": MOVE}, "id: is missing"),
        ({**CLOUD, "id": 7, "data": MOVE}, "id: is not a string"),
        (CLOUD, "data: is missing"),
        ({**CLOUD, "data": MOVE, "data_base64": "e30="}, "given twice"),
        ({**CLOUD, "data_base64": "?"}, "not base64"),
        ({**CLOUD, "data_base64": 7}, "not base64"),
        ({**CLOUD, "data": [MOVE]}, "not a JSON object"),
        ({**CLOUD, "datacontenttype": "text/xml", "data": "<a/>"}, "text/xml, not JSON"),
        ({**CLOUD, "time": "yesterday", "data": MOVE}, "time: is not an instant"),
    ],
)  # fmt: skip
def test_an_unreadable_event_is_poison_with_a_reason(document: Any, words: str) -> None:
    assert words in reason(document)


def test_a_batch_of_cloud_events_is_not_read() -> None:
    assert "batch" in reason([CLOUD], content_type="application/cloudevents-batch+json")


def test_a_payload_may_speak_of_cloud_events() -> None:
    assert read({**MOVE, "payload": {"specversion": "1.0"}}).payload == '{"specversion": "1.0"}'


@given(
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(["ce-specversion", "ce-id", "content-type", "Nats-Msg-Id"]), st.text()),
)
def test_hostile_bytes_are_a_change_or_poison_and_nothing_else(body: bytes, headers: dict[str, str]) -> None:
    with suppress(Poison):
        parse_change(body, headers)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from([*MOVE, *CLOUD, "version", "cancel", "payload", "id", "data", "data_base64", "time", "subject"])


@given(st.dictionaries(NAMES, JSON))
def test_hostile_documents_are_a_change_or_poison_and_nothing_else(document: dict[str, Any]) -> None:
    with suppress(Poison):
        read(document)
