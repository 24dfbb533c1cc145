"""Numbers in the texts of requests."""

import pytest

from horai.core.digits import number_in


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("42", 42),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("", None),
        ("-1", None),
        ("4.2", None),
        ("٤٢", None),
    ],
)
def test_only_ascii_digits_are_a_number_and_at_most_eighteen(text: str, number: int | None) -> None:
    assert number_in(text) == number


def test_the_most_digits_may_be_fewer() -> None:
    assert (number_in("123456789", 9), number_in("1234567890", 9)) == (123456789, None)
