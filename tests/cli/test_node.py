"""`horai node` and `horai up --processes N` as processes: they share the work, end together, and are started again."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from forked import HORAI, ForkedPopen
from harness import HoraiProcess, NodeProcess, start_interpreter
from terminal import Terminal, clean_environment

from horai.cli.processes import LONGEST_PAUSE, pause_before
from horai.core.limits import SHARDS

LEASE = ("--lease-ttl", "3s", "--grace", "3s")


def get(base: str, path: str) -> Any:
    with urllib.request.urlopen(base + path, timeout=30) as response:
        return json.load(response)


def until(told: Callable[[], Any], within: float = 60.0) -> Any:
    """Wait until `told` returns a true value, and return it."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        with suppress(OSError):
            if found := told():
                return found
        time.sleep(0.05)
    raise AssertionError("not in time")


def members(base: str, count: int) -> dict[str, Any]:
    """The live nodes by name, once there are `count` and each has its share of every duty."""

    def told() -> dict[str, Any]:
        items = get(base, "/api/v1/scheduler/nodes")["items"]
        held = [sorted(node["shards"][duty] for node in items) for duty in ("dispatch", "trigger")]
        is_shared = all(sum(shares) == SHARDS and shares[-1] - shares[0] <= 1 for shares in held)
        return {node["name"]: node for node in items} if len(items) == count and is_shared else {}

    return until(told)


@contextmanager
def running(process: HoraiProcess) -> Generator[HoraiProcess]:
    """Started, and not left behind."""
    process.start()
    children = psutil.Process(process.pid).children(recursive=True)
    try:
        yield process
    finally:
        if psutil.pid_exists(process.pid):
            process.kill()
        psutil.wait_procs(children, timeout=30)


def test_nodes_on_one_database_share_its_shards_and_hand_them_over_at_a_stop(url: str, short_place: Path) -> None:
    first = NodeProcess(short_place / "n1", url, *LEASE)
    first.launch = start_interpreter
    with running(first) as one:
        assert members(one.base, 1)["n1"]["roles"] == ["api", "scheduler", "executor"]
        with running(NodeProcess(short_place / "n2", url, *LEASE, "--roles", "scheduler,executor")) as other:
            assert other.base == "node n2 (scheduler, executor)"
            both = members(one.base, 2)
            assert both["n2"]["roles"] == ["scheduler", "executor"]
            assert {node["shards"]["dispatch"] for node in both.values()} == {SHARDS / 2}
            assert other.stop() == 0
        assert members(one.base, 1)["n1"]["shards"] == {"dispatch": SHARDS, "trigger": SHARDS}
        assert one.stop() == 0


def test_a_node_that_is_killed_is_replaced_by_the_others_after_its_lease(url: str, short_place: Path) -> None:
    with (
        running(NodeProcess(short_place / "k1", url, *LEASE)) as one,
        running(NodeProcess(short_place / "k2", url, *LEASE, "--roles", "scheduler,executor")) as other,
    ):
        members(one.base, 2)
        other.kill()
        killed = time.monotonic()

        assert members(one.base, 1)["k1"]["shards"] == {"dispatch": SHARDS, "trigger": SHARDS}
        assert time.monotonic() - killed < 3 + 10, "a lease, and not the sweep of every 30 s"
        assert one.stop() == 0


def test_up_with_processes_keeps_that_many_nodes(short_place: Path) -> None:
    with running(HoraiProcess(short_place / "many", "--name", "many", "--processes", "2", *LEASE)) as up:
        first = members(up.base, 2)
        assert set(first) == {"many", "many-2"}
        assert first["many-2"]["roles"] == ["scheduler", "executor"]

        os.kill(first["many-2"]["pid"], signal.SIGKILL)
        until(lambda: members(up.base, 2)["many-2"]["incarnation"] != first["many-2"]["incarnation"])
        assert "A process has ended: restarting it." in up.log.read_text()
        second = members(up.base, 2)["many-2"]

        assert up.stop() == 0
        assert not psutil.pid_exists(second["pid"])
        assert "lease not given back" not in up.log.read_text(), "the database stops last"


def test_children_end_with_a_parent_that_was_killed(url: str, short_place: Path) -> None:
    up = HoraiProcess(short_place / "gone", "--database-url", url, "--name", "gone", "--processes", "3", *LEASE)
    with running(up):
        nodes = members(up.base, 3)
        children = [psutil.Process(node["pid"]) for name, node in nodes.items() if name != "gone"]

        up.kill()

        _, alive = psutil.wait_procs(children, timeout=30)
        assert alive == []


def test_a_node_may_be_told_to_end_with_its_stdin(url: str) -> None:
    process = ForkedPopen(
        [HORAI, "node", "--roles", "executor", "--name", "n", "--until-stdin-ends", "--database-url", url],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Horai is ready: node n (executor)\n"
        _, err = process.communicate(timeout=30)

    assert process.returncode == 0
    assert "stdin has ended" in err


def test_a_node_needs_a_database(alone: Terminal) -> None:
    assert alone("node").failed_with(
        2, "error: A node needs a database.", "hint: Give --database-url, or set HORAI_DATABASE_URL."
    )


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--roles", "api,worker", "'worker' is not a role: choose from api, scheduler, executor"),
        ("--roles", ",", "a node without a role has nothing to do"),
        ("--lease-ttl", "0s", "must be longer than 0"),
        ("--callback-allow", "10.0.0.1/8", "did you mean 10.0.0.0/8?"),
    ],
)
def test_a_wrong_value_is_bad_usage(alone: Terminal, flag: str, value: str, words: str) -> None:
    variable = "HORAI_" + flag[2:].replace("-", "_").upper()

    for refused in (alone("node", flag, value), alone("node", **{variable: value})):
        assert (refused.code, refused.out) == (2, "")
        assert words in refused.err.splitlines()[0]


def test_a_node_without_a_key_is_not_reached_by_others_either(alone: Terminal) -> None:
    refused = alone("node", "--host", "0.0.0.0", "--database-url", "postgresql://unused")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: Refusing to listen on 0.0.0.0 without TLS")


def test_the_pause_before_a_restart_doubles_up_to_its_limit() -> None:
    assert [pause_before(restart) for restart in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert pause_before(100) == LONGEST_PAUSE
