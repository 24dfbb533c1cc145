"""JSON at the edge, read strictly: what PostgreSQL or another reader would choke on is refused here, with its reason.

Refused: what is not UTF-8 or not JSON, NaN and infinities, NUL characters, lone surrogates, numbers of absurd length,
names that occur twice, and nesting deeper than `NESTING_LIMIT`.
"""

import json
import math
import re
from typing import Any, cast

from horai.core.settings import NESTING_LIMIT

NUMBER_LIMIT = 400
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonError(ValueError):
    """Why a text is not JSON that can be kept."""


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text; `JsonError` says why there is none."""
    _check_depth(raw)
    try:
        return _checked(
            json.loads(
                raw.decode("utf-8"),
                parse_constant=_refuse_constant,
                parse_int=_integer,
                parse_float=_float,
                object_pairs_hook=_object,
            )
        )
    except UnicodeDecodeError as error:
        raise JsonError(f"the body is not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise JsonError(f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error


def check_text(text: str) -> str:
    """A string without NUL and lone surrogates."""
    if "\x00" in text:
        raise JsonError("a string contains a NUL character")
    if _SURROGATE.search(text):
        raise JsonError("a string contains a lone surrogate")
    return text


def _check_depth(raw: bytes) -> None:
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", raw)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > NESTING_LIMIT:
            raise JsonError(f"the body is nested deeper than {NESTING_LIMIT} levels")


def _refuse_constant(word: str) -> None:
    raise JsonError(f"{word} is not JSON")


def _integer(text: str) -> int:
    if len(text) > NUMBER_LIMIT:
        raise JsonError(f"a number has more than {NUMBER_LIMIT} digits")
    return int(text)


def _float(text: str) -> float:
    number = float(text) if len(text) <= NUMBER_LIMIT else math.inf
    if math.isinf(number):
        raise JsonError("a number is too large or too long")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if check_text(name) in found:
            raise JsonError(f"the name {name[:64]!r} occurs twice in one object")
        found[name] = _checked(value)
    return found


def _checked(value: Any) -> Any:
    """Checks strings outside objects and inside arrays too: `_object` is called for objects alone."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            check_text(item)
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))
    return value
