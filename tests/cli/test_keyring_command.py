"""`horai secrets`, `horai keyring` and the key of an embedded database: what is on the disk, in a dump and in the log."""

import asyncio
import base64
import json
import os
import shlex
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from dumps import dump
from harness import HoraiProcess
from pages import blocks
from receiver import Receiver
from terminal import Terminal

CANARY = "hunter2canary"


def dump_of(data_dir: Path) -> str:
    """Return a dump of the whole database, made by pg_dump."""
    url = Terminal()("db", "url", "--admin", "--data-dir", str(data_dir)).out.strip()
    made = dump(url, "--inserts")
    assert "CREATE TABLE horai.data_key" in made
    return made


def logs_of(running: HoraiProcess) -> str:
    """Return everything that the process and its database have logged."""
    files = [running.log, *(path for path in running.data_dir.rglob("*.log") if path.is_file())]
    return "".join(path.read_text(errors="replace") for path in files)


def ask(running: HoraiProcess, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Send a request and return the JSON of its answer."""
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    request = urllib.request.Request(
        running.base + path, None if body is None else json.dumps(body).encode(), given, method=method
    )
    with urllib.request.urlopen(request) as response:
        text = response.read()
    return json.loads(text) if text else None


@pytest.fixture
def place(short_place: Path) -> Path:
    return short_place / f"enc-{os.urandom(3).hex()}"


def ran(running: HoraiProcess, job: str) -> Any:
    """Trigger the job and return its instance when it has ended."""
    key = os.urandom(6).hex()
    instance = ask(running, "POST", f"/api/v1/jobs/{job}/trigger", Idempotency_Key=key)["instance"]["id"]
    for _ in range(3_000):
        found = ask(running, "GET", f"/api/v1/instances/{instance}")
        if found["state"] in {"SUCCESS", "DEAD"}:
            return found
    raise AssertionError(f"the instance {instance} has not ended")


@pytest.mark.timeout(180)
def test_C42_no_secret_is_in_a_dump_a_log_the_audit_or_an_answer_also_after_rotation_and_delete(place: Path) -> None:
    asyncio.run(_whole_sentence(place))


async def _whole_sentence(place: Path) -> None:
    async with Receiver() as receiver:
        await asyncio.to_thread(_with_receiver, place, receiver)


def _with_receiver(place: Path, receiver: Receiver) -> None:
    key_file = place / "encryption.key"
    running = HoraiProcess(place).start()
    try:
        horai = Terminal(HORAI_SERVER=running.base)
        assert S_IMODE(key_file.stat().st_mode) == 0o600
        assert horai("secrets", "set", "crm", stdin=f"{CANARY}-named\n").code == 0
        headers = {"Authorization": {"secret": "crm"}, "X-Plain": f"{CANARY}-header"}
        target = {"type": "http", "url": receiver.url(f"/hook?t={CANARY}-query"), "headers": headers}
        said = [ask(running, "POST", "/api/v1/jobs", {"name": "nightly", "target": target})]
        source = {"type": "sql", "query": "select $1, $2", "databaseUrl": f"postgresql://u:{CANARY}@db.example/shop"}
        said.append(ask(running, "POST", "/api/v1/reconcilers", {"name": "desk", "job": "nightly", "source": source}))
        rotated = ask(running, "POST", "/api/v1/signing-secrets", {"expireOld": "0s"}, Idempotency_Key="rotate")
        secret = rotated["items"][0]["secret"]
        assert ran(running, "nightly")["state"] == "SUCCESS"
        hit = receiver.hits[-1]
        sent = (hit.headers["authorization"], hit.headers["x-plain"], hit.path.partition("?")[2])
        assert sent == (f"{CANARY}-named", f"{CANARY}-header", f"t={CANARY}-query")
        said += [ask(running, "GET", path) for path in READ]
        dumped = dump_of(place)
        for hidden in (CANARY, secret.removeprefix("whsec_"), key_file.read_text().strip()):
            assert hidden not in dumped
            assert hidden not in logs_of(running)
            assert hidden not in str(said)
    finally:
        assert running.stop() == 0

    old = key_file.read_text()
    typed = Terminal()("keyring", "rotate", "--data-dir", str(place))
    assert (typed.code, "0 data keys were wrapped again." in typed.err) == (0, True), typed
    key_file.write_text(
        subprocess.run(["openssl", "rand", "-base64", "32"], capture_output=True, text=True, check=True).stdout + old
    )
    running = HoraiProcess(place).start()
    try:
        rotated = Terminal()("keyring", "rotate", "--data-dir", str(place), "--json")
        assert rotated.code == 0, rotated
        newest, before = rotated.json["items"]
        assert (newest["dataKeys"], before["dataKeys"], newest["isGiven"]) == (1, 0, True)
    finally:
        assert running.stop() == 0

    key_file.write_text(key_file.read_text().splitlines()[0] + "\n")
    running = HoraiProcess(place).start()
    try:
        assert ran(running, "nightly")["state"] == "SUCCESS"
        assert receiver.hits[-1].headers["authorization"] == f"{CANARY}-named"
        assert CANARY not in dump_of(place)
        rows = ask(running, "GET", "/api/v1/audit?limit=500")
        assert CANARY not in str(rows)
        ask(running, "DELETE", "/api/v1/reconcilers/desk")
        ask(running, "DELETE", "/api/v1/jobs/nightly")
        assert Terminal(HORAI_SERVER=running.base)("secrets", "delete", "crm").code == 0
        dumped = dump_of(place)
        assert CANARY not in dumped
        left = dumped.count("INSERT INTO horai.signing_secret ")
        assert dumped.count('"$enc"') == left, "only signing secrets are left"
        assert CANARY not in logs_of(running)
    finally:
        assert running.stop() == 0


READ = (
    "/api/v1/jobs?limit=500", "/api/v1/jobs/nightly", "/api/v1/reconcilers", "/api/v1/secrets", "/api/v1/instances",
    "/api/v1/audit?limit=500", "/api/v1/search?q=nightly", "/api/v1/scheduler/attention",
)  # fmt: skip


@pytest.mark.timeout(120)
def test_a_lost_key_file_is_reported_and_not_replaced(place: Path) -> None:
    running = HoraiProcess(place).start()
    try:
        assert Terminal(HORAI_SERVER=running.base)("secrets", "set", "crm", stdin=CANARY).code == 0
    finally:
        assert running.stop() == 0
    key = (place / "encryption.key").read_bytes()
    (place / "encryption.key").unlink()

    refused = Terminal()("up", "--port", "0", "--data-dir", str(place))

    assert refused.code == 1
    assert "encryption.key cannot be used: No such file or directory" in refused.err
    assert "Restore the file from your backup" in refused.err
    assert not (place / "encryption.key").exists()
    (place / "encryption.key").write_bytes(key)
    running = HoraiProcess(place).start()
    assert running.stop() == 0


@pytest.mark.timeout(120)
def test_the_commands_of_the_guide_encryption_md_do_what_it_says(place: Path) -> None:
    """In their order, in one directory; `horai up` runs in the background with the key of the guide."""
    place.mkdir(parents=True)
    running: HoraiProcess | None = None
    horai, admin = Terminal(), ""
    typed = [command.text for block in blocks("docs/guides/encryption.md") for command in block.commands]
    assert len(typed) == 14
    try:
        for text in typed:
            if text.startswith("horai up"):
                running = HoraiProcess(place / "data", "--encryption-key-file", str(place / "encryption.key")).start()
                root = Terminal()("keys", "create", "--role", "platform-admin", "--server", running.base).out.strip()
                horai = Terminal(HORAI_SERVER=running.base, HORAI_DATA_DIR=str(place / "data")).at(place)
                assert horai("tenants", "create", "shop", HORAI_API_KEY=root).code == 0
                made = horai("keys", "create", "--tenant", "shop", "--role", "admin", HORAI_API_KEY=root)
                admin = made.out.strip()
            elif "horai" not in text:
                subprocess.run(text, shell=True, cwd=place, check=True)
            else:
                before, _, command = text.rpartition("horai ")
                stdin = shlex.split(before)[1] if before else ""
                done = horai(*shlex.split(command), stdin=stdin, HORAI_API_KEY=admin)
                assert done.code == 0, f"{text}\n{done.err}"
                if command == "secrets names":
                    assert "crm-token" in done.out
                if command == "jobs show charge":
                    assert ("encrypted" in done.out, "4111111111111111" in done.out) == (True, True)
                    assert "4111111111111111" not in dump_of(place / "data")
                if command.startswith("jobs create refund"):
                    assert "orderId, customer.id" in done.out
                if command.startswith("keyring erase"):
                    assert "1 data keys of the tenant shop are erased." in done.err
    finally:
        if running is not None:
            assert running.stop() == 0


@pytest.mark.timeout(120)
def test_C42_the_key_of_a_command_is_in_no_argument_environment_log_or_file(place: Path, tmp_path: Path) -> None:
    key = base64.b64encode(os.urandom(32)).decode()
    (tmp_path / "kms").write_text(key)
    command = shlex.join(["cat", str(tmp_path / "kms")])
    running = HoraiProcess(place, "--encryption-key-command", command, "--processes", "2").start()
    try:
        horai = Terminal(HORAI_SERVER=running.base)
        wish = (
            "--encrypted",
            "--search-path",
            "card",
            "--payload",
            f'{{"card": "{CANARY}"}}',
            "--url",
            "http://127.0.0.1:9/",
        )
        assert horai("jobs", "create", "charge", *wish).code == 0
        assert horai("instances", "put", "charge", "a", "--in", "100d").code == 0
        found = horai("instances", "list", "--job", "charge", "--payload", f"card={CANARY}", "--json")
        assert (found.code, len(found.json["items"])) == (0, 1), found
        assert not (place / "encryption.key").exists()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                seen = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                assert key.encode() not in seen, process
        assert CANARY not in dump_of(place)
        assert key not in logs_of(running)
    finally:
        assert running.stop() == 0
    rotated = Terminal()("keyring", "status", "--data-dir", str(place), "--encryption-key-command", command, "--json")
    assert [(one["dataKeys"], one["isGiven"]) for one in rotated.json["items"]] == [(1, True)]
    refused = Terminal()(
        "up", "--port", "0", "--data-dir", str(place), "--encryption-key-command", f"cat {tmp_path / 'absent'}"
    )
    assert (refused.code, "the command cat cannot be used: it ended with status 1" in refused.err) == (1, True), refused
    both = ("--encryption-key-command", command, "--encryption-key-file", str(tmp_path / "kms"))
    assert Terminal()("up", "--port", "0", "--data-dir", str(place), *both).code == 2


def test_a_secret_is_refused_with_its_reason_and_never_repeated(horai: Terminal, tmp_path: Path) -> None:
    bad = horai("secrets", "set", "crm", stdin=f"{CANARY}\nsecond line")
    assert (bad.code, "value" in bad.err, CANARY in bad.err) == (1, True, False)
    assert horai("secrets", "set", "crm", "--file", str(tmp_path / "absent")).code == 2
    (tmp_path / "value").write_text(f"{CANARY}\n")
    stored = horai("secrets", "set", "crm", "--file", str(tmp_path / "value"), "--json")
    assert (stored.code, stored.json["version"]) == (0, 1)
    assert "crm" in horai("secrets", "names").out
    assert horai("secrets", "delete", "crm").code == 0
    gone = horai("secrets", "delete", "crm")
    assert (gone.code, "`horai secrets names` lists them." in gone.err) == (1, True)


@pytest.mark.parametrize("text", ["hunter2", "aHVudGVyMg==", ""])
def test_a_key_that_cannot_be_used_is_refused_at_the_start_without_being_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "encryption.key"
    file.write_text(text)
    refused = Terminal()("keyring", "status", "--data-dir", str(tmp_path / "d"), "--encryption-key-file", str(file))
    assert refused.code == 1
    assert "openssl rand -base64 32" in refused.err
    assert not text or text not in refused.err
