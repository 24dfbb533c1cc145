"""`horai audit`, against a server."""

import itertools
import json
import time
from pathlib import Path

import pytest
from harness import HoraiProcess
from terminal import Terminal

_serial = itertools.count(1)


@pytest.fixture
def job(horai: Terminal) -> str:
    """A job that was paused."""
    name = f"audited-{next(_serial)}"
    assert horai("jobs", "create", name, "--handler", name).code == 0
    assert horai("jobs", "pause", name, "--note", "stock-taking").code == 0
    return name


def test_C9_writes_are_listed_with_their_change(horai: Terminal, job: str) -> None:
    listed = horai("audit", "list", "--object", job, "--verb", "job.pause", "--all")

    assert (listed.code, listed.err) == (0, "")
    heading, row = listed.out.splitlines()
    assert heading.split() == ["ID", "AT", "ACTOR", "VERB", "OBJECT", "CHANGE", "SEAL"]
    for word in ("keyless", "job.pause", f"job {job}", "status: ACTIVE → PAUSED", "note: none → stock-taking"):
        assert word in row
    assert horai("audit", "list", "--object", job, "--json").json["items"][0]["verb"] == "job.pause"
    assert horai("audit", "list", "--verb", "job.destroy").code == 1


def test_C9_the_chain_of_a_server_with_an_embedded_database_is_signed(
    horai: Terminal, job: str, server: HoraiProcess
) -> None:
    deadline = time.monotonic() + 60
    while not (verified := horai("audit", "verify", "--json").json)["seals"] or verified["unsealed"]:
        assert time.monotonic() < deadline
    key = server.data_dir / "audit.key"

    assert verified["intact"]
    assert verified["signedTo"] == int(verified["head"].partition(":")[0])
    assert key.stat().st_mode & 0o777 == 0o600
    shown = horai("audit", "verify", "--head", verified["head"])
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.split()[:2] == ["intact", "yes"]


def test_a_head_that_is_not_in_the_chain_fails_the_command(horai: Terminal, job: str) -> None:
    failed = horai("audit", "verify", "--head", f"999999:{'0' * 64}")

    assert failed.code == 1
    assert "cut in seal 999999" in failed.out
    assert "not intact: 1 faults" in failed.err


def test_C9_an_export_is_written_as_lines_of_json(horai: Terminal, job: str, tmp_path: Path) -> None:
    out = horai("audit", "export", "--object", job, "--verb", "job.pause")
    saved = horai("audit", "export", "--object", job, "--verb", "job.pause", "--output", str(tmp_path / "audit.jsonl"))

    [line] = [json.loads(line) for line in out.out.splitlines()]
    assert line["object"]["name"] == job
    assert saved.code == 0
    assert len((tmp_path / "audit.jsonl").read_text().splitlines()) == 1
    again = horai("audit", "export", "--output", str(tmp_path / "audit.jsonl"))
    assert again.code == 1
    assert "cannot be written" in again.err


def test_a_node_does_not_start_with_a_key_that_it_cannot_use(
    alone: Terminal, tmp_path: Path, short_place: Path
) -> None:
    (tmp_path / "audit.key").write_text("secret")
    for file in ("audit.key", "missing.key"):
        ended = alone(
            "up", "--port", "0", "--data-dir", str(short_place / "keyed"), "--audit-key-file", str(tmp_path / file)
        )

        assert ended.code == 1
        assert file in ended.err
        assert "openssl genpkey" in ended.err
