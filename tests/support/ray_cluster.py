"""A Ray cluster of processes on this machine, whose nodes can be killed as by a loss of power."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from sizes import IS_LONG

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None and not IS_LONG, reason="Ray is not installed; `make ray-tests` installs it"
)
START_WITHIN = 120.0
LITTLE = ["--object-store-memory=80000000", "--disable-usage-stats", "--block"]
QUICK = {
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
    "RAY_enable_metrics_collection": "0",
}
"""Settings of Ray: a driver gives a lost head up after 10 s instead of a minute."""


class RayNode:
    """The processes of one node, in one session."""

    def __init__(self, log: Path, *arguments: str) -> None:
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments, *LITTLE],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **QUICK, "RAY_ADDRESS": ""},
                start_new_session=True,
            )
        self._log = log

    def ready(self) -> "RayNode":
        """Wait until the node has started."""
        until = time.monotonic() + START_WITHIN
        while "Ray runtime started" not in self._log.read_text():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < until, self._log.read_text()
            time.sleep(0.05)
        return self

    def runs(self, handler: str) -> bool:
        """Return whether a process of the node runs a task of the handler, which is then the title of the process."""
        title = f"ray::{handler}"
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if process.cmdline()[:1] == [title]:
                    return True
        return False

    def kill(self) -> None:
        """Send SIGKILL to all processes of the node at once: those of tasks have process groups of their own."""
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class RayCluster:
    """A head, and nodes that can be added. The head runs tasks only if it has CPUs."""

    def __init__(self, place: Path) -> None:
        self._place = place
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self._port}"
        self._started = 0
        self.nodes: list[RayNode] = []
        self.head: RayNode | None = None

    def start_head(self, cpus: int = 0) -> None:
        """Start the head, at the same address as before."""
        self.head = self._node(
            "--head",
            "--include-dashboard=false",
            "--node-ip-address=127.0.0.1",
            f"--port={self._port}",
            f"--num-cpus={cpus}",
            f"--temp-dir={self._place}",
        )
        self.head.ready()

    def add_node(self, cpus: int = 2) -> RayNode:
        """Start another node, without a wait."""
        node = self._node(f"--address={self.address}", "--node-ip-address=127.0.0.1", f"--num-cpus={cpus}")
        self.nodes.append(node)
        return node

    def _node(self, *arguments: str) -> RayNode:
        self._started += 1
        return RayNode(self._place / f"log-{self._started}", *arguments)

    def kill(self) -> None:
        """Kill the whole cluster."""
        for node in [*self.nodes, self.head]:
            if node is not None:
                node.kill()


@contextmanager
def ray_cluster(cpus: int = 0, nodes: int = 0) -> Generator[RayCluster]:
    """Run a cluster. The paths of its sockets must be short."""
    place = Path(tempfile.mkdtemp(prefix="hr-", dir="/tmp"))
    cluster = RayCluster(place)
    try:
        cluster.start_head(cpus)
        for _ in range(nodes):  # one after another: Ray gives a node 30 s to start
            cluster.add_node().ready()
        yield cluster
    finally:
        cluster.kill()
        shutil.rmtree(place, ignore_errors=True)
