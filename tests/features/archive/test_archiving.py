"""Closed days become Parquet files that have every row, in the types that any tool reads."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import archive_yard as yard
import make
import pytest
from databases import Superuser

from horai.db import archives
from horai.db.archives import PartitionDay
from horai.features.archive import archiving
from horai.features.archive.archiving import archive_partition
from horai.features.archive.writer import ArchiveDamaged, DayWriter
from horai.operations.archive_directory import file_below
from horai.operations.archive_place import ArchiveBusy
from horai.operations.archive_tables import TABLES

NASTY = [
    "",
    "\\N",
    "NULL",
    'a "b", c',
    "line\nline\r\nline\rend",
    "tab\tend",
    "中文 🎉",
    "it''s; --",
    "\x1f",
    "a,b\\,c",
    " ",
]
"""Texts that a careless CSV loses or changes."""


async def test_a_day_has_one_file_for_each_tenant_with_all_its_rows(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with make.scope(url) as scope:
        job, day = await make.job(scope), yard.ago(20)
        north = await yard.second_tenant(connection)
        part = await yard.history(connection, job, day, 30)
        await yard.history(connection, job, day, 7, tenant_id=north, prefix="north-")
        await yard.history(connection, job, yard.ago(19), 5)
        place = await yard.place(connection, tmp_path)

        done = await archive_partition(connection, place, part)

    assert (done.rows, done.written, done.kept) == (37, [1, north], [])
    own, other = yard.parquet(tmp_path)
    assert own == tmp_path / place.path_of(1, part, "any")
    assert own.name.startswith(f"{day:%Y-%m-%d}-")
    found = dict(yard.read(own, "key, state"))
    wanted = await connection.fetch(
        "select key, horai.state_name(state) as state from horai.instance_history where tenant_id = 1"
        " and finished_at >= $1 and finished_at < $2",
        *part.bounds,
    )
    assert found == {row["key"]: row["state"] for row in wanted}
    assert {key for (key,) in yard.read(other, "key")} == {f"north-{n}" for n in range(1, 8)}
    assert yard.files(tmp_path) == [own, other], "nothing else is left behind"
    assert await archives.is_archived(connection, "instance_history", day)
    assert await archives.is_archived(connection, "instance_history", f"instance_history_{day:%Y%m%d}")
    assert not await archives.is_archived(connection, "instance_history", yard.ago(19))
    assert (own.parent.stat().st_mode & 0o777) == 0o700


async def test_a_plain_parquet_library_reads_names_times_and_json(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope, queue="mail", priority="core")
        part = await yard.history(connection, job, yard.ago(20), 10)
        await archive_partition(connection, await yard.place(connection, tmp_path), part)

    [file] = yard.parquet(tmp_path)
    columns = (
        "job, queue, priority, state, reason, error_msg, payload, epoch_us(fire_time), typeof(fire_time), encrypted"
    )
    rows = {row[6]: row for row in yard.read(file, columns)}
    dead, cancelled = rows['{"n" : 10}'], rows['{"n" : 1}']
    assert dead[:4] == ("publish", "mail", "core", "DEAD")
    assert dead[5] == 'a "quoted"\nline'
    assert cancelled[3:5] == ("CANCELLED", "USER")
    noon = datetime.combine(part.day, yard.NOON)
    assert dead[7] == int(noon.timestamp() + 10) * 1_000_000
    assert dead[8:] == ("TIMESTAMP WITH TIME ZONE", False)


async def test_every_text_and_null_survives_in_every_table(url: str, connection: Superuser, tmp_path: Path) -> None:
    day = yard.ago(20)
    await yard.make_day(connection, day)
    at = datetime.combine(day, yard.NOON)
    for n, text in enumerate([*NASTY, None]):
        await connection.execute(
            "insert into horai.attempt (instance_id, job_id, tenant_id, attempt, fence, finished_at, outcome, error_code, error_msg)"
            " values ($1, 1, 1, 1, 1, $2, 'FAIL', $3, $3)",
            *(n, at, text),
        )
        await connection.execute(
            "insert into horai.event (tenant_id, instance_id, seq, at, kind, data) values (1, $1, $1::bigint, $2, $3, $4)",
            *(n, at, text or "none", None if text is None else json.dumps({"text": text})),
        )
        await connection.execute(
            "insert into horai.note (tenant_id, instance_id, fence, n, at, node, attempt, progress, message)"
            " values (1, $1, 1, 1, $2, 1, 1, $3, $4)",
            *(n, at, None if text is None else n / 7, text),
        )
    place = await yard.place(connection, tmp_path)

    for table in ("attempt", "event", "note"):
        await archive_partition(connection, place, PartitionDay(table, day))

    texts = dict(enumerate([*NASTY, None]))
    by_table = {file.parent.name: file for file in yard.parquet(tmp_path)}
    assert dict(yard.read(by_table["attempt"], "instance_id, error_msg")) == texts
    assert dict(yard.read(by_table["attempt"], "instance_id, error_code")) == texts
    assert dict(yard.read(by_table["note"], "instance_id, message")) == texts
    progress = dict(yard.read(by_table["note"], "instance_id, progress"))
    assert progress == {n: None if text is None else n / 7 for n, text in texts.items()}
    data = dict(yard.read(by_table["event"], "seq, data"))
    assert {n: None if told is None else json.loads(told)["text"] for n, told in data.items()} == texts


async def test_a_payload_of_a_megabyte_of_quotes_is_archived(url: str, connection: Superuser, tmp_path: Path) -> None:
    payload = json.dumps({"text": '"' * 450_000 + "\n" * 10})
    async with make.scope(url) as scope:
        job = await make.job(scope)
        part = await yard.history(connection, job, yard.ago(20), 2)
        await connection.execute("update horai.instance_history set payload = $1 where key = 'key-1'", payload)
        await archive_partition(connection, await yard.place(connection, tmp_path), part)

    [file] = yard.parquet(tmp_path)
    assert dict(yard.read(file, "key, payload"))["key-1"] == payload


NOT_ARCHIVED = {"concurrency_key", "own_lane", "expires_at"}
"""They say when and where instances may run, and these have ended. Files of earlier versions could not be read with it."""


@pytest.mark.parametrize("table", TABLES)
async def test_an_archived_table_has_every_column_of_its_table(connection: Superuser, table: str) -> None:
    rows = await connection.fetch(
        "select attname from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped",
        f"horai.{table}",
    )
    archived = {column.name for column in TABLES[table].columns} | {"tenant_id"}
    assert {row["attname"] for row in rows} - NOT_ARCHIVED <= archived, (
        "a new column needs a place in export_… and in archive_tables.py"
    )


async def test_values_of_an_encrypted_job_stay_sealed(url: str, connection: Superuser, tmp_path: Path) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        part = await yard.history(connection, job, yard.ago(20), 1)
        await connection.execute("update horai.job set encrypted = true")
        await connection.execute("update horai.instance_history set payload = $1", '{"sealed": "v1.abc"}')
        await archive_partition(connection, await yard.place(connection, tmp_path), part)

    [file] = yard.parquet(tmp_path)
    assert yard.read(file, "payload, encrypted") == [('{"sealed": "v1.abc"}', True)]


async def test_a_second_run_keeps_intact_files_and_replaces_a_damaged_one(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        part = await yard.history(connection, job, yard.ago(20), 10)
        place = await yard.place(connection, tmp_path)
        await archive_partition(connection, place, part)
        [file] = yard.parquet(tmp_path)
        written = file.stat().st_ino

        assert (await archive_partition(connection, place, part)).kept == [1]
        assert file.stat().st_ino == written
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 255
        file.write_bytes(data)
        assert (await archive_partition(connection, place, part)).written == [1]

    assert len(yard.read(file, "key")) == 10


async def test_rows_deleted_since_stay_in_the_file_and_rows_added_since_are_not_archived_yet(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        part = await yard.history(connection, job, yard.ago(20), 10)
        place = await yard.place(connection, tmp_path)
        await archive_partition(connection, place, part)
        await connection.execute("delete from horai.instance_history where key = 'key-1'")

        assert await archives.is_archived(connection, part.table, part.day)
        assert (await archive_partition(connection, place, part)).kept == [1]
        await yard.history(connection, job, part.day, 3, prefix="late-")
        assert not await archives.is_archived(connection, part.table, part.day)
        assert (await archive_partition(connection, place, part)).written == [1]

    assert await archives.is_archived(connection, part.table, part.day)


async def test_an_empty_day_is_archived_without_a_file(connection: Superuser, tmp_path: Path) -> None:
    part = PartitionDay("event", yard.ago(20))
    await yard.make_day(connection, part.day)
    assert not await archives.is_archived(connection, part.table, part.day)

    await archive_partition(connection, await yard.place(connection, tmp_path), part)

    assert yard.files(tmp_path) == []
    assert await archives.is_archived(connection, part.table, part.day)


async def test_an_export_that_lost_a_row_is_noticed(
    url: str, connection: Superuser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = archives.export_day

    async def cut(opened: Superuser, part: PartitionDay, to: Path) -> int:
        exported = await export(opened, part, to)
        lines = to.read_bytes().splitlines(keepends=True)
        to.write_bytes(b"".join(line for line in lines if b"key-3," not in line))
        return exported

    monkeypatch.setattr(archiving.archives, "export_day", cut)
    async with make.scope(url) as scope:
        job = await make.job(scope)
        part = await yard.history(connection, job, yard.ago(20), 9)
        with pytest.raises(ArchiveDamaged, match="8 rows, the database has 9"):
            await archive_partition(connection, await yard.place(connection, tmp_path), part)

    assert yard.files(tmp_path) == []
    assert not await archives.is_archived(connection, part.table, part.day)


async def test_a_value_that_changed_on_the_way_is_noticed(connection: Superuser, tmp_path: Path) -> None:
    day = yard.ago(20)
    await yard.make_day(connection, day)
    at = datetime.combine(day, yard.NOON)
    for n in range(3):
        await connection.execute(
            "insert into horai.event (tenant_id, instance_id, seq, at, kind) values (1, $1, 1, $2, 'INSTANCE_DEAD')",
            n,
            at,
        )
    exported = tmp_path / "day.csv"
    await archives.export_day(connection, PartitionDay("event", day), exported)
    lines = exported.read_text().splitlines()
    lines[1] = lines[1].replace("INSTANCE_DEAD", "INSTANCE_DONE")
    exported.write_text("\n".join(lines) + "\n")
    writer = DayWriter("event", tmp_path)

    writer.sort(exported)
    with pytest.raises(ArchiveDamaged, match="the file of tenant 1 has 3 rows"):
        writer.write(1)
    writer.close()


async def test_two_processes_do_not_archive_at_once(url: str, connection: Superuser, tmp_path: Path) -> None:
    part = PartitionDay("event", yard.ago(20))
    await yard.make_day(connection, part.day)
    place = await yard.place(connection, tmp_path)

    with place.working(), pytest.raises(ArchiveBusy):
        await archive_partition(connection, place, part)
    await archive_partition(connection, place, part)


async def test_a_cancelled_run_leaves_no_files_and_no_thread_at_work(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        part = await yard.history(connection, job, yard.ago(20), 2_000)
        place = await yard.place(connection, tmp_path)
        run = asyncio.create_task(archive_partition(connection, place, part))
        async with asyncio.timeout(30):
            while not (place.work / "day.csv").exists():
                await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait([run])

    assert run.cancelled()
    assert yard.files(tmp_path) == []


def test_a_recorded_path_does_not_lead_out_of_the_directory(tmp_path: Path) -> None:
    for path in ("../etc/passwd", "/etc/passwd", "a/../../b"):
        with pytest.raises(ValueError, match="is not a path of the archive"):
            file_below(tmp_path, path)


@pytest.mark.parametrize(
    ("table", "partition"), [("event", "attempt_20261103"), ("job", "job_20261103"), ("event", "event_default")]
)
def test_only_days_of_the_four_tables_are_partitions(table: str, partition: str) -> None:
    with pytest.raises(ValueError, match="is not a day of"):
        archives.day_of_partition(table, partition)
    assert datetime(2026, 11, 3, tzinfo=UTC).date() == archives.day_of_partition("event", "horai.event_20261103")
