"""Notes are kept once, in any state of their instance, and read back in the order in which they were written."""

from datetime import UTC, datetime, timedelta

from databases import Superuser

from horai.core.progress import ProgressNote
from horai.db import nodes, progress

TODAY = datetime.now(UTC)


def note(
    n: int, *, instance_id: int = 5, fence: int = 1, at: datetime = TODAY, message: str | None = None
) -> ProgressNote:
    return ProgressNote(instance_id, fence, n, at, 7, fence, n / 100, message, "default")


async def test_notes_come_back_as_they_were_said(connection: Superuser):
    said = [
        note(1, message="begun"),
        ProgressNote(5, 1, 2, TODAY, 7, 1, 0.5, None, "default"),
        ProgressNote(5, 1, 3, TODAY, 7, 1, None, "a line", "default"),
    ]

    await progress.insert_notes(connection, said)

    assert await progress.notes_of(connection, 5, 100) == said


async def test_a_batch_that_is_written_again_is_there_once(connection: Superuser):
    said = [note(n) for n in range(10)]
    await progress.insert_notes(connection, said[:7])

    await progress.insert_notes(connection, said)

    assert await progress.notes_of(connection, 5, 100) == said


async def test_the_last_notes_of_the_last_attempts_are_read(connection: Superuser):
    said = [note(n, fence=fence) for fence in (1, 2, 3) for n in range(10)]
    await progress.insert_notes(connection, [*reversed(said), note(99, instance_id=6)])

    assert await progress.notes_of(connection, 5, 15) == said[-15:]
    assert await progress.notes_of(connection, 4, 15) == []


async def test_notes_over_midnight_are_one_log(connection: Superuser):
    said = [note(n, at=TODAY + timedelta(days=n)) for n in range(3)]

    await progress.insert_notes(connection, said)

    assert await progress.notes_of(connection, 5, 100) == said
    tables = await connection.fetch("select relname from horai.note join pg_class on pg_class.oid = note.tableoid")
    assert {row["relname"] for row in tables} == {f"note_{one.at:%Y%m%d}" for one in said}


async def test_a_note_on_a_day_without_a_partition_is_kept_and_counted(connection: Superuser):
    await progress.insert_notes(connection, [note(1, at=TODAY + timedelta(days=40))])

    assert len(await progress.notes_of(connection, 5, 100)) == 1
    assert await nodes.strays(connection) == 1
