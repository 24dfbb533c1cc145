"""`horai archive`, and the flags of the archive."""

import time
from datetime import timedelta
from pathlib import Path

import archive_yard as yard
import make
import pytest
from databases import Superuser, as_node
from harness import NodeProcess
from s3_server import KEY_ID, SECRET, S3Server
from terminal import Terminal
from typer import BadParameter

from horai.cli.archive_flags import ArchiveFlags, with_archive
from horai.cli.errors import BadUsage
from horai.core.bucket import Addressing
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


async def test_a_bucket_is_filled_by_the_node_and_listed_queried_and_restored_the_same_way(
    url: str, connection: Superuser, short_place: Path
) -> None:
    async with make.scope(url) as scope:
        await yard.history(connection, await make.job(scope), DAY, 12)
    with S3Server() as storage:
        flags = ("--archive-dir", "s3://archive/horai", "--archive-cache", str(short_place / "bucket-cache"))
        node = NodeProcess(short_place / "bucket-node", as_node(url), *flags, **storage.environment).start()
        deadline = time.monotonic() + 60
        try:
            horai = Terminal(HORAI_SERVER=node.base)
            while not (listed := horai("archive", "list", "--json").json["items"]):
                assert time.monotonic() < deadline
            found = horai("archive", "query", *SPAN, "--state", "DEAD", "--json").json
            restored = horai("archive", "restore", str(DAY), "--json").json
            rows = await connection.fetchval("select count(*) from horai.restored_instance")
        finally:
            assert node.stop() == 0

    assert [(item["table"], item["rows"]) for item in listed] == [("instance_history", 12)]
    assert f"horai/{listed[0]['path']}" in storage.objects
    assert len(storage.objects[f"horai/{listed[0]['path']}"]) == listed[0]["bytes"]
    assert [item["key"] for item in found["items"]] == ["key-10"]
    assert (restored["restored"], rows) == (12, 12)
    for secret in (SECRET, KEY_ID):
        assert secret not in node.log.read_text()


def test_a_bucket_without_credentials_or_with_a_wrong_variable_is_refused() -> None:
    good = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "not-shown", "AWS_REGION": "eu-central-1"}
    settings = with_archive(EngineSettings(), ArchiveFlags("s3://logs/horai"), good)
    assert settings.archive_bucket is not None
    assert settings.archive_bucket.endpoint == "https://s3.eu-central-1.amazonaws.com"
    assert settings.archive_bucket.addressing is Addressing.VIRTUAL
    assert "not-shown" not in repr(settings)
    own = with_archive(
        EngineSettings(), ArchiveFlags("s3://logs"), {**good, "AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}
    )
    assert own.archive_bucket is not None
    assert own.archive_bucket.addressing is Addressing.PATH
    for wrong, told in (
        ({"AWS_SECRET_ACCESS_KEY": ""}, "needs credentials"),
        ({"AWS_SECRET_ACCESS_KEY": "not shown"}, "AWS_SECRET_ACCESS_KEY has characters"),
        ({"AWS_ENDPOINT_URL": "not-shown"}, "AWS_ENDPOINT_URL must be an address"),
        ({"AWS_REGION": "EU/1"}, "AWS_REGION must be the name"),
        ({"HORAI_S3_ADDRESSING": "host"}, "must be path or virtual"),
    ):
        with pytest.raises(BadUsage, match=told) as refused:
            with_archive(EngineSettings(), ArchiveFlags("s3://logs/horai"), {**good, **wrong})
        assert "not-shown" not in str(refused.value)
        assert "not shown" not in str(refused.value)
    with pytest.raises(BadParameter, match="must name a bucket"):
        with_archive(EngineSettings(), ArchiveFlags("s3://"), good)


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from-a-file\n")
    environ = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY_FILE": str(tmp_path / "secret")}
    settings = with_archive(EngineSettings(), ArchiveFlags("s3://logs"), environ)
    assert settings.archive_bucket is not None
    assert settings.archive_bucket.credentials.secret == "from-a-file"


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


def test_other_storage_a_missing_package_and_wrong_times_and_sizes_are_refused(
    alone: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = alone("up", "--archive-dir", "gs://bucket/horai")
    assert refused.code == 2
    assert "must be a directory, or a bucket such as s3://bucket/prefix" in refused.err
    for flags, told in (
        (ArchiveFlags(None, keep="89d"), "at least 90d"),
        (ArchiveFlags(None, cache_size="5"), "must be a size"),
        (ArchiveFlags(None, cache_size="0MB"), "must be a size"),
    ):
        with pytest.raises(BadParameter, match=told):
            with_archive(EngineSettings(), flags, {})
    with pytest.raises(BadParameter, match="--keep-history"):
        with_archive(EngineSettings(history_keep=timedelta(days=200)), ArchiveFlags(None, keep="100d"), {})
    kept = with_archive(EngineSettings(), ArchiveFlags(None, keep="90d", cache_size="2GB"), {})
    assert (kept.archive_dir, kept.archive_keep, kept.archive_cache_bytes) == (None, timedelta(days=90), 2 << 30)
    monkeypatch.setattr("horai.cli.archive_flags.PACKAGE", "horai_has_no_such_package")
    with pytest.raises(BadUsage, match="DuckDB"):
        with_archive(EngineSettings(), ArchiveFlags("archive"), {})
