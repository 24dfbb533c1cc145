"""A server beyond loopback, used from another machine: REST, signed calls to it, and the console.

The browser opens the console in the long form only (HORAI_LONG=1).
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from certificates import certificate
from forked import HORAI
from harness import HoraiProcess
from machines import SecondMachine, second_machine, why_not
from sizes import IS_LONG
from terminal import clean_environment

from console import chromium

ROOT = Path(__file__).parents[2]
JOB = "remote-stock"
pytestmark = [pytest.mark.skipif(why_not() is not None, reason=str(why_not())), pytest.mark.timeout(300)]


@pytest.fixture
def machine() -> Iterator[SecondMachine]:
    with second_machine() as made:
        yield made


def test_C42a_another_machine_uses_rest_signed_calls_and_the_console(
    machine: SecondMachine, short_place: Path, tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path, machine.peer, "127.0.0.1")
    tls = ("--tls-cert", str(cert), "--tls-key", str(key))
    network = ("--host", "0.0.0.0", "--require-key", "--callback-allow", f"{machine.address}/32")
    server = HoraiProcess(short_place / "first-machine", *network, *tls).start()
    base = f"https://{machine.peer}:{urlsplit(server.base).port}"
    admin = server.lines[1].split(": ")[1].strip()
    plain = clean_environment() | {"HORAI_SERVER": base, "SSL_CERT_FILE": str(cert)}
    keyed = plain | {"HORAI_API_KEY": admin}

    def there(*words: str, environment: dict[str, str] = keyed) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            machine.command(HORAI, *words), env=environment, capture_output=True, text=True, check=False
        )

    try:
        assert "error: The request has no key" in there("jobs", "list", environment=plain).stderr
        secret = json.loads(there("secrets", "list", "--json").stdout)["items"][0]["secret"]
        command = machine.command(sys.executable, str(ROOT / "tests/faults/second_machine.py"), machine.address, secret)
        with killed(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as receiver:
            assert receiver.stdout is not None
            target = receiver.stdout.readline().strip()
            made = there("jobs", "create", JOB, "--url", target)
            assert made.returncode == 0, made.stderr
            ran = there("jobs", "trigger", JOB, "--payload", '{"sku": 7}', "--wait", "--timeout", "60s", "--json")
            assert ran.returncode == 0, ran.stderr
            assert json.loads(ran.stdout)["instance"]["state"] == "SUCCESS"
            verdict, _, body = receiver.stdout.readline().partition(" ")
        assert (verdict, json.loads(body)["payload"]) == ("signed", {"sku": 7})
        assert not IS_LONG or visited(machine, base, admin) == ""
    finally:
        assert server.stop() == 0


@contextmanager
def killed(process: "subprocess.Popen[str]") -> Generator["subprocess.Popen[str]"]:
    """Kill the process at the end, also after a failure."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def visited(machine: SecondMachine, base: str, key: str) -> str:
    """Open the console in a browser on the second machine; return the report of a failure."""
    found = chromium.environment()
    if isinstance(found, chromium.Missing):
        return found.reason
    run = (sys.executable, str(ROOT / "tools" / "console.py"), "run", "vitest", "run", "--project", "network")
    told = {**os.environ, **found, "HORAI_URL": base, "HORAI_KEY": key, "HORAI_JOB": JOB}
    done = subprocess.run(machine.command(*run), cwd=ROOT, env=told, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
