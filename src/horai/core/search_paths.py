"""Search paths of encrypted jobs: the fields of a payload that instances can be found by.

A path names members from the outside in, separated by dots, such as `order.id`; a number selects an element of an array. The
value at a path is the text that a filter compares in a job that is not encrypted: a string itself, a number as it is
written, `true` or `false`. Null, arrays and objects are no values.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from horai.core.validation import Validation
from horai.text import Hint, Wrong

MOST_PATHS = 8
LONGEST_PATH = 200
DEEPEST = 10
_INDEX = re.compile(r"-?[0-9]{1,9}")


def names_in(path: str) -> tuple[str, ...] | None:
    """Return the names of a path from the outside in; None if one is empty or there are more than `DEEPEST`."""
    names = tuple(name.strip() for name in path.split("."))
    return names if all(names) and len(names) <= DEEPEST else None


def read_search_paths(document: Mapping[str, Any], faults: Validation) -> tuple[str, ...]:
    """Return the search paths of a job document. Add a fault for each that is wrong."""
    paths = tuple(document.get("searchPaths") or ())
    if paths and not document.get("encrypted"):
        faults.add("searchPaths", Wrong.ONLY_ENCRYPTED(), Hint.FILTER_PLAIN())
    if paths and document.get("refresh") is not None:
        faults.add("searchPaths", Wrong.STANDS_BESIDE(other="refresh"))
    if len(paths) > MOST_PATHS or len(set(paths)) < len(paths):
        faults.add("searchPaths", Wrong.SEARCH_PATHS(most=MOST_PATHS))
    for path in paths:
        names = names_in(path)
        if names is None or path != ".".join(names) or len(path) > LONGEST_PATH or not path.isprintable():
            faults.add("searchPaths", Wrong.NO_SEARCH_PATH(text=path[:60]), Hint.WRITE_SEARCH_PATH(most=DEEPEST))
    return paths


def values_at(payload: str, paths: Sequence[str]) -> dict[str, str | None]:
    """Return the values of a payload by path; None for a path without a value."""
    root = json.loads(payload, parse_int=str, parse_float=str)
    return {path: _value(root, path.split(".")) for path in paths}


def _value(found: Any, names: Sequence[str]) -> str | None:
    for name in names:
        found = _member(found, name)
    if isinstance(found, bool):
        return "true" if found else "false"
    return found if isinstance(found, str) else None


def _member(found: Any, name: str) -> Any:
    if isinstance(found, dict):
        return cast("dict[str, Any]", found).get(name)
    if isinstance(found, list) and _INDEX.fullmatch(name):
        items, index = cast("list[Any]", found), int(name)
        return items[index] if -len(items) <= index < len(items) else None
    return None
