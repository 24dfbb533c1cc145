"""The work of `horai source` with a file and with parked events."""

import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path

from horai.cli.errors import CommandFailed
from horai.cli.show import console, say, table
from horai.db.database_location import DatabaseLocation
from horai.features.events import parked
from horai.features.events.intake import Intake, IntakeSettings, summary_of
from horai.features.events.jsonl import JsonLines
from horai.features.events.store import Parked
from horai.logs import write_to_stderr
from horai.operations.scope import Scope
from horai.sdk.client import open_client

PAGE = 500
COLUMNS = ("ID", "SOURCE", "SUBJECT", "AT", "BYTES", "REASON")


@asynccontextmanager
async def opened_scope(place: DatabaseLocation) -> AsyncGenerator[Scope]:
    """Open the default tenant of a database, with wakes for its changes."""
    client = await open_client(place)
    try:
        yield client.scope
    finally:
        await client.close()


async def take_lines(place: DatabaseLocation, file: Path, name: str, settings: IntakeSettings) -> None:
    """Apply every line of a file and print a summary. Raises `CommandFailed` if a line was parked."""
    write_to_stderr(logging.WARNING)
    opened = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    try:
        async with opened_scope(place) as scope:
            intake = Intake(scope, JsonLines(opened, name), settings)
            await intake.run(asyncio.Event())
    finally:
        opened.close()
    say(f"{summary_of(intake.counts)}.")
    if count := intake.counts["PARKED"]:
        raise CommandFailed(f"{count} lines were parked.", "`horai source parked` shows why.")


async def show_parked(place: DatabaseLocation, source: str | None, *, as_json: bool) -> None:
    """Print all parked events."""
    write_to_stderr(logging.WARNING)
    async with opened_scope(place) as scope:
        found = await _everything(scope, source)
    if as_json:
        print(json.dumps({"items": [_json(one) for one in found], "nextCursor": None}, ensure_ascii=False))
    elif found:
        console().print(table(COLUMNS, map(_row, found)))
    else:
        say("None.")


async def retry_parked(
    place: DatabaseLocation, source: str | None, ids: Sequence[int] | None, settings: IntakeSettings
) -> None:
    """Retry parked events, one source after the other."""
    write_to_stderr(logging.WARNING)
    async with opened_scope(place) as scope:
        found = [one for one in await _everything(scope, source) if not ids or one.id in ids]
        whole = sorted((one for one in found if one.is_whole), key=lambda one: (one.source, one.id))
        for name, group in groupby(whole, key=lambda one: one.source):
            fates = await parked.retry_all(scope, list(group), settings.job)
            say(f"{name}: {summary_of(Counter(fate.word for fate in fates))}.")
    if cut := len(found) - len(whole):
        say(f"{cut} were stored only in part, because they are too long, and cannot be retried.")
    if not found:
        say("None.")


async def discard_parked(place: DatabaseLocation, ids: Sequence[int], reason: str | None) -> None:
    """Discard parked events: all of these ids or none."""
    write_to_stderr(logging.WARNING)
    async with opened_scope(place) as scope:
        gone = await parked.discard(scope, ids, reason)
    say(f"Discarded {len(gone)}.")


async def _everything(scope: Scope, source: str | None) -> list[Parked]:
    found: list[Parked] = []
    while page := await parked.read_page(scope, source, found[-1].id if found else 0, PAGE):
        found += page
    return found


def _row(one: Parked) -> tuple[str, ...]:
    at = one.at.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
    return (str(one.id), one.source, one.subject, at, str(one.size), one.reason)


def _json(one: Parked) -> dict[str, object]:
    return {
        "id": str(one.id),
        "source": one.source,
        "place": one.place,
        "subject": one.subject,
        "headers": dict(one.headers),
        "body": one.body.decode("utf-8", "backslashreplace"),
        "size": one.size,
        "reason": one.reason,
        "at": one.at.isoformat(),
    }
