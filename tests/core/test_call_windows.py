"""The options `unique` and `debounce` of a call, and the canonical form of arguments."""

from datetime import timedelta
from typing import Any

import pytest

from horai.core.call_windows import CallKind, CallWindow, call_window, canonical_arguments
from horai.core.errors import Invalid


@pytest.mark.parametrize(
    ("unique", "debounce", "window"),
    [
        (None, None, None),
        (False, None, None),
        (True, None, CallWindow(CallKind.UNIQUE, timedelta(0))),
        ("10m", None, CallWindow(CallKind.UNIQUE, timedelta(minutes=10))),
        (90, None, CallWindow(CallKind.UNIQUE, timedelta(seconds=90))),
        (timedelta(days=7), None, CallWindow(CallKind.UNIQUE, timedelta(days=7))),
        (None, "30s", CallWindow(CallKind.DEBOUNCED, timedelta(seconds=30))),
        (False, 0.5, CallWindow(CallKind.DEBOUNCED, timedelta(milliseconds=500))),
    ],
)
def test_a_window_is_true_or_a_duration(unique: Any, debounce: Any, window: CallWindow | None) -> None:
    assert call_window(unique, debounce) == window


@pytest.mark.parametrize(
    ("unique", "debounce", "said"),
    [
        ("soon", None, "unique: 'soon' is not a duration"),
        ("8d", None, "unique: is not between 1ms and 7d"),
        (0, None, "unique: is not between 1ms and 7d"),
        (float("inf"), None, "unique: is not between 1ms and 7d"),
        (timedelta(seconds=-1), None, "unique: is not between 1ms and 7d"),
        (None, "0s", "debounce: is not between 1ms and 7d"),
        (None, True, "debounce: must be a duration, not boolean"),
        (True, "5s", "debounce: cannot be combined with unique"),
    ],
)
def test_another_window_is_refused_with_the_name_of_its_option(unique: Any, debounce: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        call_window(unique, debounce)
    with pytest.raises(Invalid, match=f"items.3.{said}"):
        call_window(unique, debounce, "items.3.")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": [true, null]}', '{"b":[true,null],"a":1}'),
        ('"\\u00e9"', '"é"'),
        ('{"a": {"c": 1.50, "b": 2}}', '{"a": {"b": 2, "c": 1.50}}'),
    ],
)
def test_equal_json_has_one_canonical_form(one: str, other: str) -> None:
    assert canonical_arguments(one) == canonical_arguments(other)


def test_different_json_has_different_canonical_forms() -> None:
    given = ["1", "1.0", '"1"', "[1]", '{"": "1"}', "0.1", "0.10000000000000000001", "true", '"true"', "null", '["a","b"]', '["a,b"]']  # fmt: skip

    assert len({canonical_arguments(text) for text in given}) == len(given)
