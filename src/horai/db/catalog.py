"""The named statements of `db/sql/*.sql` and `features/*/*.sql`.

A statement starts at `-- name: x`. A line `-- moves: A | B -> C` declares the state changes that it makes; a test
compares these lines with `core.states.MOVES`. A line `-- reversed: y` defines a second statement y: the same list in
ascending order. A line `-- ordered: y by name desc` defines the same list in the order of another column, for a list by
id. `{{x}}` stands for a list of columns of `db/sql/instance_columns.sql`, `{{t.x}}` for the same list with the prefix
`t.`.

A line `-- tenant:` says how the statement keeps to one tenant; tests compare it with the text and with the functions:

- `$n`: the statement compares tenant_id with $n, inserts $n as tenant_id, or passes it to a function whose first argument is the tenant.
- `by job`, or another word of `CHECKED_IDS`: it finds its rows by ids that the caller has read with the tenant, or with
  another statement of that kind. A run counts as its workflow, a report as its reconciler. A schedule may have jobs of
  several tenants; its own rows belong to none. `by tenant` is the name of the tenant itself.
- `by session`: a function of the database takes the tenant from the login of the session.
- `none`: it touches no row that belongs to a tenant.
- `platform`: it reads or writes rows of several tenants. Only functions that take a `Platform` connection use it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_TENANT = re.compile(r"^-- tenant: (.+)$", re.MULTILINE)
_MOVES = re.compile(r"^-- moves: (.+)$", re.MULTILINE)
_COLUMNS = re.compile(r"^-- columns: (\w+)\n(?:--.*\n)*((?:(?!--).+\n)+)", re.MULTILINE)
_LIST = re.compile(r"\{\{(?:(\w+)\.)?(\w+)\}\}")
_REVERSED = re.compile(r"^-- reversed: (\w+)$", re.MULTILINE)
_ORDERED = re.compile(r"^-- ordered: (\w+) by (\w+)( desc)?$", re.MULTILINE)
_AFTER = re.compile(r"(\((?:\w+, )?id\)) < \(")

CHECKED_IDS = ("backfill", "instance", "job", "letter", "queue", "reconciler", "schedule", "tenant", "workflow")
"""The kinds of ids that a statement may rely on instead of the tenant."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement, how it keeps to one tenant, and the state changes it declares."""

    name: str
    text: str
    tenant: str | None
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
        moves, tenant = _line(_MOVES, body), _line(_TENANT, body)
        found[mark[1]] = Statement(mark[1], f"/* {mark[1]} */ {body}", tenant, moves, file)
        if (reverse := _line(_REVERSED, body)) is not None:
            found[reverse] = Statement(reverse, f"/* {reverse} */ {_upwards(body)}", tenant, None, file)
        for ordered, column, falls in _ORDERED.findall(body):
            list_ = _by_column(body, column, falls)
            found[ordered] = Statement(ordered, f"/* {ordered} */ {list_}", tenant, None, file)
    return found


def _line(pattern: re.Pattern[str], body: str) -> str | None:
    match = pattern.search(body)
    return match[1] if match else None


def _upwards(body: str) -> str:
    return _AFTER.sub(r"\1 > (", body).replace(" desc", "")


def _by_column(body: str, column: str, falls: str) -> str:
    text = body.replace("(id) > (", f"({column}) {'<' if falls else '>'} (")
    return text.replace("order by id limit", f"order by {column}{falls} limit")


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
