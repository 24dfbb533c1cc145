"""`horai archive`, and the flags of the archive."""

import time
from pathlib import Path

import archive_yard as yard
import make
import pytest
from databases import Superuser, as_node
from harness import NodeProcess
from terminal import Terminal

from horai.cli.archive_flags import with_archive
from horai.cli.errors import BadUsage
from horai.core.settings import EngineSettings
from horai.features.archive.archiving import archive_partition

DAY = yard.ago(20)
SPAN = ("--from", f"{DAY}T00:00:00Z", "--to", f"{yard.ago(19)}T00:00:00Z")


async def test_an_archived_day_is_listed_queried_restored_and_removed(
    url: str, connection: Superuser, short_place: Path
) -> None:
    root = short_place / "archived"
    async with make.scope(url) as scope:
        part = await yard.history(connection, await make.job(scope), DAY, 12)
        await archive_partition(connection, await yard.place(connection, root), part)
    node = NodeProcess(short_place / "archive-node", as_node(url), "--archive-dir", str(root)).start()
    try:
        horai = Terminal(HORAI_SERVER=node.base)
        listed = horai("archive", "list", "--table", "instance_history")
        found = horai("archive", "query", *SPAN, "--state", "DEAD", "--json").json
        everything = horai("archive", "query", *SPAN, "--limit", "5", "--all", "--json").json
        shown = horai("archive", "query", *SPAN, "--key", "key-3")
        restored = horai("archive", "restore", str(DAY), "--json").json
        again = horai("archive", "restore", str(DAY))
        rows = await connection.fetchval("select count(*) from horai.restored_instance")
        removed = horai("archive", "restore", str(DAY), "--remove", "--json").json
        unknown = horai("archive", "restore", "2020-01-01")
    finally:
        assert node.stop() == 0

    assert [line.split()[:3] for line in listed.out.splitlines()[1:]] == [[str(DAY), "instance_history", "12"]]
    assert [item["key"] for item in found["items"]] == ["key-10"]
    assert len(everything["items"]) == 12
    assert "key-3" in shown.out
    assert (restored["restored"], restored["complete"], rows) == (12, True, 12)
    assert (again.code, again.err) == (0, "")
    assert removed["restored"] == 0
    assert (unknown.code, "horai archive list" in unknown.err) == (1, True)


async def test_a_node_with_the_flag_archives_by_itself(url: str, connection: Superuser, short_place: Path) -> None:
    root = short_place / "by-itself"
    async with make.scope(url) as scope:
        await yard.history(connection, await make.job(scope), DAY, 3)
    node = NodeProcess(short_place / "archiving", as_node(url), HORAI_ARCHIVE_DIR=str(root)).start()
    deadline = time.monotonic() + 60
    try:
        while not (
            count := await connection.fetchval(
                "select count(*) from horai.archive_partition where archived_at is not null"
            )
        ):
            assert time.monotonic() < deadline
    finally:
        assert node.stop() == 0
    assert count > 0


def test_object_storage_and_a_missing_package_are_refused(alone: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = alone("up", "--archive-dir", "s3://bucket/horai")
    assert refused.code == 2
    assert "must be a directory" in refused.err
    monkeypatch.setattr("horai.cli.archive_flags.PACKAGE", "horai_has_no_such_package")
    with pytest.raises(BadUsage, match="DuckDB"):
        with_archive(EngineSettings(), "archive", "14d")
    assert with_archive(EngineSettings(), None, "14d").archive_dir is None
