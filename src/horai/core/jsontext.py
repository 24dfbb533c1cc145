"""Strict JSON input: text that PostgreSQL or another reader cannot handle is refused, with the reason.

Refused: text that is not UTF-8 or not JSON, NaN and infinities, NUL characters, lone surrogates, numbers of more than
`NUMBER_LIMIT` characters, names that occur twice, nesting deeper than `NESTING_LIMIT`, and more than `CONTAINER_LIMIT`
arrays and objects: the work that a small body can cause is bounded before the value is built.
"""

import json
import math
import re
from collections import Counter
from typing import Any, cast

from horai.core.limits import NESTING_LIMIT
from horai.text import Wrong

NUMBER_LIMIT = 400
_INTEGER_LIMIT = 10**NUMBER_LIMIT
CONTAINER_LIMIT = 500_000
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""Also matches a string that never ends: searching for its end from each quote inside it would take quadratic time."""
_ROUND = bytes.maketrans(b"[]{}", b"()()")
_NO_BRACKET = bytes(byte for byte in range(256) if byte not in b"[]{}")
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonError(ValueError):
    """The reason why a text is not JSON that can be stored."""


def parse_json(raw: bytes) -> Any:
    """Return the value of a JSON text. Raise `JsonError` with the reason if it has none."""
    _check_brackets(raw)
    try:
        value = _decoded(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise JsonError(Wrong.NOT_UTF8(byte=error.start)) from error
    except json.JSONDecodeError as error:
        raise JsonError(Wrong.NOT_JSON_AT(reason=error.msg, line=error.lineno, column=error.colno)) from error
    if b"\\u" in raw:  # without escapes, valid UTF-8 JSON has neither half a surrogate pair nor a NUL
        _check_strings(value)
    return value


def fault_in(value: Any) -> tuple[str, str] | None:
    """Return where and why a value cannot be stored as JSON: `(".items[2].price", "…")`; None if it can.

    The value is made of dicts, lists and scalars by our own code; `parse_json` reads values that arrive as text.
    """
    waiting: list[tuple[str, int, Any]] = [("", 0, value)]
    while waiting:
        path, depth, item = waiting.pop()
        try:
            _check_one(item, depth)
            if isinstance(item, dict):
                members = cast("dict[Any, Any]", item)
                waiting += [(f"{path}.{check_text(str(name))[:64]}", depth + 1, one) for name, one in members.items()]
            elif isinstance(item, list):
                waiting += [(f"{path}[{n}]", depth + 1, one) for n, one in enumerate(cast("list[Any]", item))]
        except JsonError as error:
            return path, str(error)
    return None


def _check_one(item: object, depth: int) -> None:
    if isinstance(item, dict | list) and depth == NESTING_LIMIT:
        raise JsonError(Wrong.TOO_DEEP(most=NESTING_LIMIT))
    if isinstance(item, str):
        check_text(item)
    elif isinstance(item, float) and not math.isfinite(item):
        raise JsonError(Wrong.NOT_JSON(text=str(item)))
    elif isinstance(item, int) and not -_INTEGER_LIMIT < item < _INTEGER_LIMIT:
        raise JsonError(Wrong.NUMBER_DIGITS(most=NUMBER_LIMIT))


def check_text(text: str) -> str:
    """Return `text`. Raise `JsonError` if it contains NUL or a lone surrogate."""
    if "\x00" in text:
        raise JsonError(Wrong.HAS_NUL())
    if _SURROGATE.search(text):
        raise JsonError(Wrong.HAS_SURROGATE())
    return text


def _check_brackets(raw: bytes) -> None:
    """Remove the innermost pairs once per level: a body of only brackets costs at most as much as one of text."""
    if raw.count(b"[") + raw.count(b"{") <= NESTING_LIMIT:
        return
    brackets = _STRING.sub(b"", raw).translate(_ROUND, _NO_BRACKET)
    if brackets.count(b"(") > CONTAINER_LIMIT:
        raise JsonError(Wrong.TOO_MANY_ARRAYS(most=CONTAINER_LIMIT))
    for _ in range(NESTING_LIMIT):
        brackets = brackets.replace(b"()", b"")
    if b"()" in brackets or brackets.count(b"(") > NESTING_LIMIT:
        raise JsonError(Wrong.BODY_TOO_DEEP(most=NESTING_LIMIT))


def _refuse_constant(word: str) -> None:
    raise JsonError(Wrong.NOT_JSON(text=word))


def _integer(text: str) -> int:
    if len(text) > NUMBER_LIMIT:
        raise JsonError(Wrong.NUMBER_DIGITS(most=NUMBER_LIMIT))
    return int(text)


def _float(text: str) -> float:
    number = float(text) if len(text) <= NUMBER_LIMIT else math.inf
    if math.isinf(number):
        raise JsonError(Wrong.NUMBER_TOO_LARGE())
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise JsonError(Wrong.NAME_TWICE(name=twice[:64]))
    return found


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_integer, parse_float=_float, object_pairs_hook=_object
)


def _decoded(text: str) -> Any:
    """Return the value of a text, as `json.loads` does, which would make a new decoder for each text."""
    if text.startswith("\ufeff"):
        raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
    return _DECODER.decode(text)


def _check_strings(value: Any) -> None:
    """Check every string of a value, names included."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            check_text(item)
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))
        elif isinstance(item, dict):
            waiting.extend(cast("dict[str, Any]", item))
            waiting.extend(cast("dict[str, Any]", item).values())
