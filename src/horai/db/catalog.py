"""The named statements of `db/sql/*.sql` and `features/*/*.sql`.

A statement starts at `-- name: x`. A line `-- moves: A | B -> C` declares the state changes that it makes; a test
compares these lines with `core.states.MOVES`. A line `-- reversed: y` defines a second statement y: the same list in
ascending order. `{{x}}` stands for a list of columns of `db/sql/instance_columns.sql`, `{{t.x}}` for the same list with
the prefix `t.`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MOVES = re.compile(r"^-- moves: (.+)$", re.MULTILINE)
_COLUMNS = re.compile(r"^-- columns: (\w+)\n(?:--.*\n)*((?:(?!--).+\n)+)", re.MULTILINE)
_LIST = re.compile(r"\{\{(?:(\w+)\.)?(\w+)\}\}")
_REVERSED = re.compile(r"^-- reversed: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement and the state changes it declares."""

    name: str
    text: str
    moves: str | None
    file: str


def _columns() -> dict[str, list[str]]:
    text = (resources.files("horai") / "db" / "sql" / "instance_columns.sql").read_text("utf-8")
    return {name: [column.strip() for column in listed.split(",")] for name, listed in _COLUMNS.findall(text)}


COLUMNS = _columns()


def _expanded(match: re.Match[str]) -> str:
    prefix = f"{match[1]}." if match[1] else ""
    return ", ".join(prefix + column for column in COLUMNS[match[2]])


def _parse(file: str, text: str) -> dict[str, Statement]:
    found: dict[str, Statement] = {}
    text = _LIST.sub(_expanded, text)
    marks = list(_NAME.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=False):
        body = text[mark.end() : following.start() if following else len(text)].strip().removesuffix(";")
        moves = _MOVES.search(body)
        found[mark[1]] = Statement(mark[1], f"/* {mark[1]} */ {body}", moves[1] if moves else None, file)
        if (reverse := _REVERSED.search(body)) is not None:
            found[reverse[1]] = Statement(reverse[1], f"/* {reverse[1]} */ {_upwards(body)}", None, file)
    return found


def _upwards(body: str) -> str:
    return body.replace("(fire_time, id) < (", "(fire_time, id) > (").replace(" desc", "")


def _files() -> Iterator[Traversable]:
    root = resources.files("horai")
    folders = [root / "db" / "sql", *(folder for folder in (root / "features").iterdir() if folder.is_dir())]
    return (file for folder in folders for file in folder.iterdir() if file.name.endswith(".sql"))


def _load() -> dict[str, Statement]:
    catalog: dict[str, Statement] = {}
    for file in _files():
        for name, statement in _parse(str(file), file.read_text("utf-8")).items():
            if name in catalog:
                raise ValueError(f"statement {name} is defined in {catalog[name].file} and in {file}")
            catalog[name] = statement
    return catalog


CATALOG = _load()


def sql(name: str) -> str:
    """Return the text of a named statement."""
    return CATALOG[name].text
