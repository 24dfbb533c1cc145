"""A real nats-server with JetStream, in a process that can be stopped, killed and started again on its port."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from nats.aio.client import Client
from nats.js import JetStreamContext

BINARY = str(Path(sys.executable).parent / "nats-server")
PATIENCE = 30.0


class NatsServer:
    """Its streams are on disk: what was published is there after a restart. `configuration` is that of its file."""

    def __init__(self, place: Path, configuration: str = "", port: int = -1) -> None:
        self._place = place
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        place.mkdir(parents=True)
        (place / "server.conf").write_text(configuration)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Returns when it has said that it is ready."""
        log = self._place / "server.log"
        log.write_text("")
        command = [BINARY, "-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._place), "-l", str(log)]
        command += ["-c", str(self._place / "server.conf"), "--ports_file_dir", str(self._place)]
        self._process = subprocess.Popen(command)
        self._until(lambda: "Server is ready" in log.read_text())
        ports = self._place / f"nats-server_{self._process.pid}.ports"
        self._until(lambda: ports.exists() and ports.read_text().endswith("}"))
        self._port = int(json.loads(ports.read_text())["nats"][0].rpartition(":")[2])
        return self

    def stop(self) -> None:
        """SIGTERM."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=PATIENCE)

    def _until(self, holds: Any) -> None:
        assert self._process is not None
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert self._process.poll() is None, (self._place / "server.log").read_text()
            assert time.monotonic() < deadline, "nats-server did not get ready"
            time.sleep(0.01)


@asynccontextmanager
async def publisher(*servers: NatsServer, user: str = "") -> AsyncGenerator[JetStreamContext]:
    """Open a connection of another client. `user` is a name with its password, as in a URL."""

    async def trouble(error: Exception) -> None:
        """Servers of these tests go away."""

    client = Client()
    urls = [server.url.replace("//", f"//{user}@" if user else "//") for server in servers]
    pause: Any = 0.05  # seconds: the library accepts fractions
    await client.connect(urls, error_cb=trouble, reconnect_time_wait=pause, max_reconnect_attempts=-1)
    try:
        yield JetStreamContext(client)
    finally:
        await client.close()
