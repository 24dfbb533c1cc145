"""`horai export` and `horai import`: definitions and dead letters go from one cluster to another, and back."""

import base64
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from databases import fresh_database
from embedded_servers import wait_until
from harness import NodeProcess
from terminal import Terminal

from horai.cli.client import RestClient
from horai.cli.errors import CommandFailed
from horai.cli.import_plan import ImportAction, ImportStep, plan_calendar, plan_job, plan_queue
from horai.cli.importing import Importer
from horai.embedded import EmbeddedPostgres

SOME_KEY = base64.b64encode(bytes(range(32))).decode()
LOOPBACK = ("--callback-allow", "127.0.0.0/8")
GONE = {"type": "http", "url": "http://127.0.0.1:9/gone", "method": "POST", "headers": {}}


class Cluster:
    """A node on a database of its own, and a terminal that knows it."""

    def __init__(self, node: NodeProcess) -> None:
        self.base = node.base
        self.horai = Terminal(HORAI_SERVER=node.base)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {"Content-Type": "application/json", **{key.replace("_", "-"): text for key, text in headers.items()}}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/api/v1{path}", data, named, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
        return json.loads(text) if text else None

    def preview(self, file: Path) -> dict[str, Any]:
        shown = self.horai("import", str(file), "--json")
        assert shown.code == 0, shown.err
        return shown.json

    def imported(self, file: Path, *flags: str) -> dict[str, Any]:
        shown = self.horai("import", str(file), "--apply", "--json", *flags)
        assert shown.code == 0, shown.err
        return shown.json


@contextmanager
def cluster(postgres: EmbeddedPostgres, place: Path) -> Generator[Cluster]:
    with fresh_database(postgres) as url:
        node = NodeProcess(place, url, *LOOPBACK, HORAI_ENCRYPTION_KEY=SOME_KEY)
        node.start()
        try:
            yield Cluster(node)
        finally:
            assert node.stop() == 0


@pytest.fixture(scope="module")
def old(postgres: EmbeddedPostgres, module_place: Path) -> Iterator[Cluster]:
    """A cluster with a queue, a calendar, jobs of several kinds, and dead letters."""
    with cluster(postgres, module_place / "old") as made:
        made.ask("PUT", "/queues/narrow", {"maxConcurrency": 3, "rate": "30/m", "priority": "high"})
        made.ask("PUT", "/calendars/bank", {"holidays": [{"date": "2026-12-25", "name": "Christmas"}]})
        cron = {"cron": "0 3 * * *", "timezone": "Asia/Shanghai", "calendar": {"name": "bank"}, "tags": ["night"]}
        raw = {"name": "pay", "target": GONE, "queue": "narrow", "retry": {"maxRetry": 0}}
        made.ask(
            "POST",
            "/jobs",
            json.dumps(raw)[:-1].encode() + b', "payload": {"amount": 1.10, "big": 12345678901234567890}}',
        )
        made.ask("POST", "/jobs", {"name": "nightly", "target": GONE, **cron})
        made.ask("POST", "/jobs", {"name": "once", "target": GONE, "at": "2999-01-01T00:00:00Z"})
        secret = {**GONE, "headers": {"Authorization": "hush"}}
        made.ask("POST", "/jobs", {"name": "secretive", "target": secret})
        made.ask("POST", "/jobs", {"name": "held", "target": GONE, "every": "1h"})
        made.ask("POST", "/jobs/held/pause", {"note": "summer"})
        body = b'{"items": [{"key": "a", "payload": {"cents": 1.10}}, {"key": "b"}, {"key": "c"}]}'
        made.ask("POST", "/jobs/pay/instances/batch", body)
        wait_until(lambda: len(made.ask("GET", "/dlq")["items"]) == 3)
        letter = next(one for one in made.ask("GET", "/dlq")["items"] if one["key"] == "c")
        made.ask("POST", f"/dlq/{letter['id']}/discard", {"reason": "not needed"})
        letter = next(one for one in made.ask("GET", "/dlq")["items"] if one["key"] == "b")
        made.ask("POST", f"/dlq/{letter['id']}/replay", {})
        wait_until(lambda: len(made.ask("GET", "/dlq")["items"]) == 4)
        yield made


@pytest.fixture
def new(postgres: EmbeddedPostgres, module_place: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster(postgres, module_place / f"new-{abs(hash(request.node.name))}") as made:
        yield made


@pytest.fixture(scope="module")
def file(old: Cluster, module_place: Path) -> Path:
    path = module_place / "export.jsonl"
    assert old.horai("export", str(path)).code == 0
    return path


def actions(shown: dict[str, Any]) -> dict[str, str]:
    return {f"{step['kind']} {step['name']}": step["action"] for step in shown["steps"] if step["action"] != "same"}


class _Target(BaseHTTPRequestHandler):
    bodies: list[bytes] = []  # noqa: RUF012
    fences: list[int] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.fences.append(int(self.headers["Horai-Fence"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Write nothing."""


@pytest.mark.timeout(120)
def test_C41_definitions_and_dead_letters_are_carried_to_another_cluster_and_back(
    old: Cluster, new: Cluster, file: Path, module_place: Path
) -> None:
    created = {
        "queue narrow": "create", "calendar bank": "create", "job pay": "create", "job nightly": "create",
        "job held": "create", "job once": "skip", "job secretive": "skip",
    }  # fmt: skip
    preview = new.preview(file)
    assert actions(preview) == created
    assert preview["deadLetters"] == {"imported": 2, "known": 0, "skipped": {}, "leftOut": 2}
    assert new.ask("GET", "/jobs")["items"] == []
    assert new.ask("GET", "/dlq")["items"] == []

    done = new.imported(file)
    assert actions(done) == created
    assert done["deadLetters"]["imported"] == 2
    for name in ("pay", "nightly", "held"):
        mine, theirs = new.ask("GET", f"/jobs/{name}"), old.ask("GET", f"/jobs/{name}")
        own = {"id", "version", "createdAt", "updatedAt", "note"}
        assert {k: v for k, v in mine.items() if k not in own} == {k: v for k, v in theirs.items() if k not in own}
        assert mine["version"] == 1
    assert (new.ask("GET", "/queues/narrow")["rate"], new.ask("GET", "/queues/narrow")["priority"]) == ("30/m", "high")
    assert new.ask("GET", "/calendars/bank")["holidays"] == [{"date": "2026-12-25", "name": "Christmas"}]
    _compare_letters(old, new)

    again = new.imported(file)
    assert actions(again) == {"job once": "skip", "job secretive": "skip"}
    assert again["deadLetters"] == {"imported": 0, "known": 2, "skipped": {}, "leftOut": 2}
    assert new.ask("GET", "/jobs/pay")["version"] == 1
    assert len(new.ask("GET", "/dlq")["items"]) == 2
    _replay(new)

    back = module_place / "back.jsonl"
    assert new.horai("export", str(back)).code == 0
    returned = old.preview(back)
    assert actions(returned) == {"job pay": "change"}, "the target that was repaired there"


def _compare_letters(old: Cluster, new: Cluster) -> None:
    fields = ("job", "key", "errorCode", "errorMsg", "tags", "fingerprint", "replayStatus", "createdAt")
    theirs = {one["key"]: one for one in old.ask("GET", "/dlq")["items"] if one["replayStatus"] == "NEW"}
    mine = {one["key"]: one for one in new.ask("GET", "/dlq")["items"]}
    assert mine.keys() == {"a", "b"}
    for key, letter in mine.items():
        assert [letter[name] for name in fields] == [theirs[key][name] for name in fields]
    assert mine["a"]["tags"] == ["transient_error"]
    assert new.ask("GET", f"/dlq/{mine['a']['id']}")["instance"]["state"] == "DEAD"


def _replay(new: Cluster) -> None:
    """Repair the target and replay: the receiver gets the payload to the letter, and a later fence."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Target) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/pay"
        new.ask("PATCH", "/jobs/pay", {"target": {"type": "http", "url": url}})
        assert new.horai("dlq", "replay", "--tag", "transient_error", "--yes").code == 0
        wait_until(lambda: len(new.ask("GET", "/jobs/pay/instances?state=SUCCESS")["items"]) == 2)
        server.shutdown()
    assert any(b'"cents": 1.10' in body for body in _Target.bodies), _Target.bodies
    assert sorted(_Target.fences) == [2, 3], "the fence of each key continues"
    assert {one["replayStatus"] for one in new.ask("GET", "/dlq")["items"]} == {"REPLAYED"}


@pytest.mark.timeout(120)
def test_an_import_changes_only_what_differs_and_a_reader_of_an_old_version_is_refused(
    new: Cluster, file: Path
) -> None:
    new.imported(file, "--paused")
    assert {one["status"] for one in new.ask("GET", "/jobs")["items"]} == {"PAUSED"}
    new.ask("PATCH", "/jobs/nightly", {"priority": "low", "jitter": "5s"})
    new.ask("PUT", "/queues/narrow", {"maxConcurrency": 9})
    version = new.ask("GET", "/jobs/nightly")["version"]

    preview = new.horai("import", str(file), "--paused")
    assert "Nothing was changed: --apply makes these changes." in preview.err
    done = new.imported(file, "--paused")

    assert actions(done) == {
        "queue narrow": "change",
        "job nightly": "change",
        "job once": "skip",
        "job secretive": "skip",
    }
    job = new.ask("GET", "/jobs/nightly")
    assert (job["version"], job.get("jitter")) == (version + 1, None)
    assert new.ask("GET", "/queues/narrow")["maxConcurrency"] == 3
    with pytest.raises(urllib.error.HTTPError) as refused:
        new.ask("PATCH", "/jobs/nightly", {"tags": []}, If_Match=f'"{version}"')
    refused.value.close()
    assert refused.value.code == 412
    stale = ImportStep("job", "nightly", ImportAction.CHANGE, body={"tags": []}, version=version)
    with pytest.raises(CommandFailed, match="version"):
        Importer(RestClient(new.base))._apply(stale)
    assert new.ask("GET", "/jobs/nightly")["tags"] == ["night"]


def test_a_file_that_was_cut_off_is_not_imported(new: Cluster, file: Path, module_place: Path) -> None:
    cut = module_place / "cut.jsonl"
    cut.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    other = module_place / "other.txt"
    other.write_text("no export\n")

    refused = new.horai("import", str(cut), "--apply")

    assert refused.failed_with(1, f"error: {cut} is not complete: its last line is missing.", "hint: Export it again.")
    assert new.horai("import", str(other)).err == f"error: {other} is not a file of `horai export`.\n"
    assert new.ask("GET", "/jobs")["items"] == []


def test_letters_of_unknown_and_of_encrypted_jobs_are_left_out(new: Cluster) -> None:
    new.ask("POST", "/jobs", {"name": "sealed", "target": GONE, "encrypted": True})
    letter = {"fireTime": "2026-01-01T00:00:00Z", "diedAt": "2026-01-01T00:00:00Z", "errorCode": "E"}
    letters = [{**letter, "origin": name, "job": name} for name in ("unknown", "sealed")]

    told = new.ask("POST", "/dlq/import", {"letters": letters})

    skipped = [{"origin": "unknown", "reason": "NO_JOB"}, {"origin": "sealed", "reason": "ENCRYPTED_JOB"}]
    assert told == {"imported": 0, "known": 0, "skipped": skipped, "dryRun": False}
    assert new.ask("GET", "/dlq")["items"] == []


# The plan

JOB: dict[str, Any] = {
    "name": "j",
    "status": "ACTIVE",
    "payload": None,
    "rawPayload": None,
    "definition": {"name": "j", "cron": "0 3 * * *", "timezone": "UTC", "target": GONE, "tags": [], "timeout": "5s"},
}


def shown(**changes: Any) -> dict[str, Any]:
    """The job as a server shows it."""
    kept = {"misfire": "once", "overlap": "allow", "priority": "normal", "encrypted": False, "searchPaths": []}
    return {**kept, **JOB["definition"], "status": "ACTIVE", "payload": None, "version": 4, **changes}


def test_an_equal_job_is_left_alone_and_another_is_changed_in_its_version() -> None:
    assert plan_job(JOB, shown(), is_paused=False).action is ImportAction.SAME
    changed = plan_job(JOB, shown(cron="0 4 * * *", jitter="5s"), is_paused=False)
    assert (changed.action, changed.body, changed.version) == (
        ImportAction.CHANGE, {"cron": "0 3 * * *", "jitter": None}, 4,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("definition", "payload", "why"),
    [
        ({"delay": "0s"}, None, "runs once"),
        ({"at": "2999-01-01T00:00:00Z"}, None, "runs once"),
        ({"target": {"type": "worker", "handler": "horai:refresh"}}, None, "makes it"),
        ({"encrypted": True}, {"horai": "sealed"}, "sealed with a key"),
        ({"target": {**GONE, "headers": {"Authorization": "***"}}}, None, "secret values"),
    ],
)
def test_jobs_that_cannot_be_carried_are_skipped_with_the_reason(definition: Any, payload: Any, why: str) -> None:
    exported = {**JOB, "definition": {**JOB["definition"], **definition}, "payload": payload}

    step = plan_job(exported, None, is_paused=False)

    assert step.action is ImportAction.SKIP
    assert why in step.detail
    assert step.body is None


def test_queues_and_calendars_are_written_in_the_version_that_was_read() -> None:
    queue = {
        "name": "q",
        "version": 2,
        "priority": None,
        "maxConcurrency": None,
        "rateCount": 5,
        "ratePer": 1.0,
        "paused": False,
    }
    found = {"priority": "normal", "maxConcurrency": None, "rate": "5/s", "paused": False, "version": 7}
    assert plan_queue({**queue, "version": 0}, None).action is ImportAction.SAME
    assert plan_queue(queue, found).action is ImportAction.SAME
    assert (plan_queue(queue, None).action, plan_queue(queue, None).version) == (ImportAction.CREATE, 0)
    paused = plan_queue(queue, {**found, "paused": True})
    assert (paused.action, paused.detail, paused.version) == (ImportAction.CHANGE, "paused", 7)
    days = {"holidays": [], "workdays": [], "weekend": [], "hours": None}
    assert plan_calendar({"name": "c", "days": days}, {**days, "version": 1}).action is ImportAction.SAME
    assert plan_calendar({"name": "c", "days": days}, None).version == 0
