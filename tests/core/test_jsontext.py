import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.jsontext import NUMBER_LIMIT, JsonError, check_text, parse_json
from horai.core.limits import NESTING_LIMIT

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)


@given(value=values, ascii_only=st.booleans())
def test_parse_json_reads_back_every_value_that_json_writes(value: object, ascii_only: bool):
    assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"{} {}", "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"NaN", "NaN is not JSON"),
        (b'{"a": Infinity}', "Infinity is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"1e999", "too large"),
        (b"[-1e999]", "too large"),
        (b"9" * (NUMBER_LIMIT + 1), "more than 400 digits"),
        (b"0." + b"9" * NUMBER_LIMIT, "too large or too long"),
        (b'"\\u0000"', "NUL"),
        (b'{"a\\u0000": 1}', "NUL"),
        (b'{"a": [["\\u0000"]]}', "NUL"),
        (b'[[{"a": ["\\u0000"]}]]', "NUL"),
        (b'"\\ud800"', "lone surrogate"),
        (b'{"\\udfff": 1}', "lone surrogate"),
        (b'[{"a": "x\\ud800"}]', "lone surrogate"),
        (b'{"a": 1, "a": 2}', "'a' occurs twice"),
        (b'[{"b": {"a": 1, "\\u0061": 2}}]', "'a' occurs twice"),
        (b'"\t"', "not JSON"),
        (b'"\x00"', "not JSON"),
    ],
)
def test_invalid_or_ambiguous_json_is_refused_with_its_reason(raw: bytes, reason: str):
    with pytest.raises(JsonError, match=reason):
        parse_json(raw)


@pytest.mark.parametrize(("open_", "close"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_taken_up_to_its_limit(open_: bytes, close: bytes):
    deepest = open_ * NESTING_LIMIT + b"1" + close * NESTING_LIMIT
    assert parse_json(deepest) is not None

    for raw in (open_ + deepest + close, open_ * 100_000):
        with pytest.raises(JsonError, match="nested deeper"):
            parse_json(raw)


def test_brackets_in_strings_are_no_nesting():
    text = '\\"[{' * 1000

    assert parse_json(json.dumps([text]).encode()) == [text]


def test_a_surrogate_pair_is_one_character():
    assert parse_json(b'"\\ud83d\\ude00"') == "😀"


def test_a_number_of_many_digits_is_kept_to_the_last():
    assert parse_json(b"9" * NUMBER_LIMIT) == 10**NUMBER_LIMIT - 1


@pytest.mark.parametrize(
    "raw",
    [
        b'"' + b'\\"' * 200_000,
        b'"' * 200_001,
        b'"' + b"\\" * 400_001,
        b'["' + b"a" * 400_000,
        b'{"a":"' * 100_000,
        b"]" * 400_000,
        b"[" + b'"\\"",' * 100_000,
    ],
)
def test_a_hostile_body_is_refused_in_no_time(raw: bytes):
    started = time.perf_counter()

    with pytest.raises(JsonError):
        parse_json(raw)

    assert time.perf_counter() - started < 2.0


def test_a_text_that_can_be_kept_is_given_back():
    assert check_text("naïve 😀\n") == "naïve 😀\n"


def test_a_text_with_half_a_character_is_refused():
    with pytest.raises(JsonError):
        check_text("\udc80")
