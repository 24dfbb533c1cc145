"""Output: JSON unchanged, or tables for people. Control characters that a server sends are escaped."""

import json
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from horai.cli.errors import one_line

UNBOUNDED = 100_000
"""Columns without a terminal: a pipe gets every row on one line."""

STATE_STYLES = {
    **dict.fromkeys(("SUCCESS", "ACTIVE", "UP", "INSERTED", "UPDATED"), "green"),
    **dict.fromkeys(("DEAD", "DEGRADED"), "red"),
    **dict.fromkeys(("FAIL", "PAUSED", "SUPERSEDED"), "yellow"),
    **dict.fromkeys(("RUNNING",), "cyan"),
    **dict.fromkeys(("CANCELLED", "IGNORED"), "dim"),
}


def console() -> Console:
    """Return a console on stdout, without colours in a pipe or with NO_COLOR."""
    return Console(width=None if sys.stdout.isatty() else UNBOUNDED, highlight=False, soft_wrap=False)


def print_json(answer: bytes) -> None:
    """Print the response unchanged, or indented for a terminal."""
    text = msgspec.json.format(answer, indent=2) if sys.stdout.isatty() else answer
    sys.stdout.write(text.decode("utf-8") + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of plain text. The first column, which names the row, never wraps."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, column in enumerate(columns):
        drawn.add_column(column, no_wrap=number == 0)
    for row in rows:
        drawn.add_row(*(cell(text) for text in row))
    return drawn


def print_list(page: Mapping[str, Any], columns: Sequence[str], row: Callable[[Any], Sequence[str]]) -> None:
    """Print a page of a list as a table. Write to stderr if it is empty or there may be more."""
    if page["items"]:
        console().print(table(columns, map(row, page["items"])))
    else:
        say("None.")
    if page["nextCursor"] is not None:
        say("There may be more: --all shows them.")


def show_list(answer: bytes, as_json: bool, columns: Sequence[str], row: Callable[[Any], Sequence[str]]) -> None:
    """Print a page of a list as JSON or as a table."""
    if as_json:
        print_json(answer)
    else:
        print_list(msgspec.json.decode(answer), columns, row)


def show_answer(answer: bytes, as_json: bool, draw: Callable[[Any], None]) -> None:
    """Print a response as JSON, or let `draw` print it for people."""
    if as_json:
        print_json(answer)
    else:
        draw(json.loads(answer))


def show_fields(answer: bytes, as_json: bool, pairs: Callable[[Any], Iterable[tuple[str, str]]]) -> None:
    """Print one object as JSON or as fields."""
    show_answer(answer, as_json, lambda found: console().print(fields(pairs(found))))


def once_headers(key: str | None) -> dict[str, str]:
    """Return the Idempotency-Key header with `key` or a new UUID, and print the key so that the user can repeat it."""
    named = key or str(uuid.uuid4())
    say(f"Idempotency-Key: {named}")
    return {"Idempotency-Key": named}


def fields(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return one object as lines of name and value, without empty values."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    drawn.add_column(style="bold", no_wrap=True)
    drawn.add_column()
    for name, value in pairs:
        if value:
            drawn.add_row(name, cell(value))
    return drawn


def cell(text: str) -> Text:
    """Return plain text without markup and control characters."""
    return Text(one_line(text), style=STATE_STYLES.get(text, ""))


def say(text: str) -> None:
    """Print one line to stderr."""
    print(one_line(text), file=sys.stderr)
