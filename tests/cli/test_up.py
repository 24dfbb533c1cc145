"""`horai up` as a process: one line when it is ready, a clean end, and a way out of every refusal."""

import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forked import HORAI, ForkedPopen
from harness import HoraiProcess
from terminal import Terminal, clean_environment

from horai.node import KEYLESS


@contextmanager
def begun(
    *arguments: str, start: "type[subprocess.Popen[str]]" = ForkedPopen, **environment: str
) -> Generator["subprocess.Popen[str]"]:
    """`horai up`, which is not left behind. It is forked with its imports done, unless told otherwise."""
    process = start(
        [HORAI, "up", *arguments],
        env=clean_environment() | {"HORAI_PORT": "0"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    ready, _, address = process.stdout.readline().strip().partition(": ")
    assert ready == "Horai is ready"
    return address


def test_sigterm_ends_it_cleanly_with_one_line_on_stdout_and_the_rest_on_stderr(url: str, alone: Terminal) -> None:
    flags = ("--name", "node-7", "--lease-ttl", "3s", "--callback-allow", "10.0.0.0/8")
    with begun(*flags, start=subprocess.Popen, HORAI_NAME="other", HORAI_DATABASE_URL=url) as process:
        health = alone("health", "--json", HORAI_SERVER=address_of(process)).json
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)

    assert (process.returncode, out) == (0, "")
    assert KEYLESS in err
    assert [node["name"] for node in health["nodes"]] == ["node-7"]


def test_a_first_ctrl_c_waits_for_what_runs_and_a_second_does_not(url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, begun(HORAI_GRACE="60s", DATABASE_URL=url) as process:
        horai = Terminal(HORAI_SERVER=address_of(process))
        target = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        horai("jobs", "create", "hangs", "--url", target, "--timeout", "60s")
        horai("jobs", "trigger", "hangs")
        call, _ = silent.accept()
        with call:
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)

    assert process.returncode == 130


def test_a_signal_before_it_is_ready_ends_it_cleanly_too(short_place: Path) -> None:
    directory = short_place / "early"
    with begun("--data-dir", str(directory)) as process:
        while not directory.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (0, ""), err
    assert not (directory / "pgdata" / "postmaster.pid").exists()


def test_a_port_in_use_is_told_with_a_way_out(alone: Terminal, server: HoraiProcess) -> None:
    port = server.base.rpartition(":")[2]

    refused = alone("up", "--port", port, "--database-url", "postgresql://unused")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"error: Cannot listen on 127.0.0.1:{port}: ")
    assert refused.err.splitlines()[1] == "hint: Is another Horai running? Choose another --port."


def test_an_address_that_others_reach_is_refused_without_tls(alone: Terminal) -> None:
    refused = alone("up", "--host", "0.0.0.0", "--port", "0")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: Refusing to listen on 0.0.0.0 without TLS")
    assert "\nhint: " in refused.err


def test_a_database_out_of_reach_is_told(alone: Terminal) -> None:
    refused = alone("up", "--port", "0", DATABASE_URL="postgresql://127.0.0.1:1/none")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: The database cannot be reached: ")
    assert "\nhint: Check --database-url" in refused.err


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--lease-ttl", "8", "'8' is not a duration"),
        ("--lease-ttl", "0s", "must be longer than 0"),
        ("--callback-allow", "10.0.0.1/8", "did you mean 10.0.0.0/8?"),
        ("--port", "70000", "less than or equal to 65535"),
    ],
)
def test_a_wrong_value_is_bad_usage_as_flag_and_as_variable(alone: Terminal, flag: str, value: str, words: str) -> None:
    variable = "HORAI_" + flag[2:].replace("-", "_").upper()

    for refused in (alone("up", flag, value), alone("up", **{variable: value})):
        assert (refused.code, refused.out) == (2, "")
        assert refused.err.startswith(f"error: Invalid value for '{flag}'")
        assert words in refused.err.splitlines()[0]
