"""An invalid name is refused in words, not with the pattern of names."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from horai.api.shape_errors import misshapen
from horai.core.job import HANDLER, NAME, QUEUE, SECRET_NAME
from horai.core.timing import CALENDAR_NAME
from horai.features.alerts.wire import AlertName
from horai.features.outbox.places import SINK_NAME
from horai.features.secrets.wire import SecretIn
from horai.text import mismatch

WORDS = "is not a name: use letters, digits, dots, hyphens and underscores, starting with a letter or digit, at most {} characters"


@pytest.mark.parametrize(
    ("pattern", "most"),
    [(NAME, 128), (HANDLER, 128), (QUEUE, 64), (SECRET_NAME, 64), (CALENDAR_NAME, 64), (SINK_NAME, 64)],
)
def test_a_name_that_does_not_match_is_refused_in_words(pattern: re.Pattern[str], most: int) -> None:
    told = mismatch("my first job", pattern)

    assert told == f"'my first job' {WORDS.format(most)}"
    assert (told.code, told.params) == ("NOT_NAMED_SO", {"value": "my first job", "most": most})


def test_another_pattern_is_named_and_a_long_value_is_cut() -> None:
    assert mismatch("x" * 99, re.compile(r"\d+")) == f"'{'x' * 40}' does not match \\d+"


@pytest.mark.parametrize(
    ("shape", "given"), [(TypeAdapter[str](AlertName), "a b"), (TypeAdapter(SecretIn), {"name": "a b", "value": "x"})]
)
def test_a_name_of_a_public_model_is_refused_in_words(shape: TypeAdapter[object], given: object) -> None:
    with pytest.raises(ValidationError) as caught:
        shape.validate_python(given)

    told = misshapen(caught.value.errors()[0])

    assert told == WORDS.format(64)
    assert (told.code, told.params) == ("NO_NAME", {"most": 64})
