"""Backups of a server that works: acknowledged work is in them, and a snapshot schedule shows what it does."""

import asyncio
import json
import shutil
import threading
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from embedded_servers import ask as sql
from embedded_servers import short_lived_place, wait_until
from harness import HoraiProcess
from terminal import Terminal

from horai.embedded import url_of
from horai.embedded.admin import admin_url


@pytest.fixture
def place() -> Iterator[Path]:
    with short_lived_place() as made:
        yield made


def ask(base: str, method: str, path: str, body: Any = None) -> Any:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(
        base + path, None if body is None else json.dumps(body).encode(), headers, method=method
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read()
    return json.loads(text) if text.startswith((b"{", b"[")) else text.decode()


class _Target(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Write nothing."""


@contextmanager
def target() -> Generator[dict[str, str]]:
    """A target that takes every call."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Target) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {"type": "http", "url": f"http://127.0.0.1:{server.server_port}/work"}
        finally:
            server.shutdown()


class Load:
    """Threads that put instances until they are stopped, and know which ones the server has acknowledged."""

    def __init__(self, base: str, threads: int = 3) -> None:
        self.acknowledged: list[str] = []
        self._base = base
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _send(self, thread: int) -> None:
        number = 0
        while not self._is_over.is_set():
            items = [{"key": f"{thread}-{number}-{each}", "payload": {"n": each}} for each in range(10)]
            for made in ask(self._base, "POST", "/api/v1/jobs/work/instances/batch", {"items": items})["items"]:
                self.acknowledged.append(made["instanceId"])
            number += 1

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.timeout(240)
def test_C41_work_that_was_acknowledged_before_a_backup_began_is_there_after_its_restore(place: Path) -> None:
    """And dead letters: both come with the snapshot, and the restored server runs them again."""
    terminal = Terminal()
    with target() as works:
        server = HoraiProcess(place / "data").start()
        ask(server.base, "POST", "/api/v1/jobs", {"name": "work", "target": works})
        gone = {"type": "http", "url": "http://127.0.0.1:9/gone"}
        ask(server.base, "POST", "/api/v1/jobs", {"name": "broken", "target": gone, "retry": {"maxRetry": 0}})
        ask(server.base, "POST", "/api/v1/jobs/broken/instances/batch", {"items": [{"key": "a", "payload": {"n": 7}}]})
        wait_until(lambda: ask(server.base, "GET", "/api/v1/dlq")["items"])
        load = Load(server.base)
        wait_until(lambda: len(load.acknowledged) > 500)

        before = list(load.acknowledged)
        made = terminal("backup", str(place / "backups"), "--data-dir", str(place / "data"), "--json")
        after = len(load.acknowledged)
        load.stop()
        server.kill()

        assert made.code == 0, made.err
        assert after > len(before), "the server worked meanwhile"
        assert made.json["violations"] == {}
        assert made.json["counts"]["live"] + made.json["counts"]["history"] >= len(before)
        restored = terminal("restore", str(place / "backups"), "--data-dir", str(place / "restored"))
        assert restored.code == 0, restored.err
        for key in ("encryption.key", "audit.key"):
            assert not (place / "restored" / key).exists(), "keys are kept elsewhere"
            shutil.copy(place / "data" / key, place / "restored" / key)
        again = HoraiProcess(place / "restored").start()
        try:
            url = terminal("db", "url", "--data-dir", str(place / "restored")).out.strip()
            missing = [each for each in before if not _is_there(again.base, each)]
            assert missing == [], f"{len(missing)} of {len(before)} in {url}"
            wait_until(lambda: not ask(again.base, "GET", "/api/v1/instances?state=INIT&limit=1")["items"])
            (letter,) = ask(again.base, "GET", "/api/v1/dlq")["items"]
            assert (letter["job"], letter["key"], letter["tags"]) == ("broken", "a", ["transient_error"])
            assert ask(again.base, "GET", f"/api/v1/dlq/{letter['id']}")["instance"]["payload"] == {"n": 7}
            ask(again.base, "PATCH", "/api/v1/jobs/broken", {"target": works})
            replayed = ask(again.base, "POST", f"/api/v1/dlq/{letter['id']}/replay", {})["instance"]["id"]
            wait_until(lambda: ask(again.base, "GET", f"/api/v1/instances/{replayed}")["state"] == "SUCCESS")
            verified = terminal("db", "verify", "--data-dir", str(place / "restored"), "--json")
            assert verified.json["holds"], verified.out
        finally:
            assert again.stop() == 0


def _is_there(base: str, instance: str) -> bool:
    return ask(base, "GET", f"/api/v1/instances/{instance}")["job"] == "work"


@pytest.mark.timeout(240)
def test_F5_snapshots_are_taken_on_a_schedule_and_their_age_and_failures_are_shown(place: Path) -> None:
    backups = place / "backups"
    flags = ("--backup-dir", str(backups), "--backup-every", "1m", "--backup-keep", "2")
    server = HoraiProcess(place / "data", *flags).start()
    try:
        wait_until(lambda: _last(server)["successAt"] is not None)
        last = _last(server)
        (path,) = backups.iterdir()
        assert (last["path"], last["error"]) == (str(path), None)
        assert 0 <= last["age"] < 120
        assert ask(server.base, "GET", "/api/v1/scheduler/attention")["failingBackups"] == []
        figures = ask(server.base, "GET", "/metrics")
        assert "horai_backup_failed 0.0" in figures
        assert "horai_backup_age_seconds " in figures
        (made,) = ask(server.base, "GET", "/api/v1/audit?verb=backup.create")["items"]
        assert (made["actor"]["kind"], made["object"]["name"]) == ("system", str(backups))
        older = "update horai.backup_run set started_at = started_at - interval '1 hour' returning 1"
        asyncio.run(sql(admin_url(url_of(place / "data")), older))
    finally:
        assert server.stop() == 0

    for old in backups.iterdir():
        old.rename(place / "elsewhere")
    backups.rmdir()
    backups.write_text("a file is in the way")
    server = HoraiProcess(place / "data", *flags).start()
    try:
        wait_until(lambda: _last(server)["failedAt"] is not None)
        assert "is not a directory" in _last(server)["error"]
        assert "horai_backup_failed 1.0" in ask(server.base, "GET", "/metrics")
        wait_until(lambda: ask(server.base, "GET", "/api/v1/scheduler/attention")["failingBackups"])
        (failing,) = ask(server.base, "GET", "/api/v1/scheduler/attention")["failingBackups"]
        assert "is not a directory" in failing["error"]
    finally:
        assert server.stop() == 0


def _last(server: HoraiProcess) -> Any:
    return ask(server.base, "GET", "/api/v1/scheduler/health")["lastBackup"] or {"successAt": None, "failedAt": None}
