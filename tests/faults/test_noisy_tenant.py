"""One tenant uses all that it can, and another one's instances and requests take at most twice as long.

The noisy tenant has 70 jobs at host names whose name server is silent, 100 readers of the live feed, pages of payloads of 1 MB, a
forecast of 500 cron jobs, and 1,000,000 due instances; the short form is a twentieth of this.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import asyncpg
import pytest
from forked import HORAI, Forked
from harness import Client, HoraiProcess, Launched
from receiver import Receiver
from sizes import IS_LONG

from faults.outside import job_document

SCALE = 1.0 if IS_LONG else 0.05
DUE = int(1_000_000 * SCALE)
DEAD_NAMES = 70
PROBES = 200 if IS_LONG else 40
NAME_SERVER = "127.113.0.9"
WITH_NAME_SERVER = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
LEAST = 0.025
"""Seconds below which a p95 says more about the machine than about the server."""


def why_not() -> str | None:
    """Return the reason why this machine cannot run a server with a name server of its own."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None:
        return "a name server of its own needs root and `unshare` on Linux"
    return None


pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@contextmanager
def silent_name_server(place: Path) -> Generator[Path]:
    """The resolv.conf of a name server that answers nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((NAME_SERVER, 53))
        file = place / "resolv.conf"
        file.write_text(f"nameserver {NAME_SERVER}\noptions timeout:30 attempts:5\n")
        yield file


class ServerWithNames(HoraiProcess):
    """`horai up` that asks the name server of `names`, in a mount namespace of its own."""

    names: Path

    @staticmethod
    def launch(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Launched:
        command = ["unshare", "--mount", "sh", "-c", WITH_NAME_SERVER, str(ServerWithNames.names), HORAI, *arguments]
        with log.open("a") as errors:
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)


@dataclass(frozen=True)
class Delays:
    """The p95 of both promises, in seconds."""

    start: float
    """From the time that an instance is due to its call."""
    read: float
    """Of the answer to a read of a job."""


class QuietTenant:
    """The tenant that is measured: it adds an instance, waits for its call, and reads its job."""

    def __init__(self, api: Client, key: str, receiver: Receiver) -> None:
        self._api, self._receiver = api, receiver
        self._headers = {"Authorization": f"Bearer {key}"}

    async def open(self) -> None:
        document = job_document("probe", self._receiver.url("/hook"))
        made = await self._api("POST", "/api/v1/jobs", document, **self._headers)
        assert made.status == 201, made.json

    async def delays(self) -> Delays:
        self._receiver.hits.clear()
        starts: list[float] = []
        reads: list[float] = []
        for number in range(PROBES):
            due = time.time()
            key = f"probe-{number}-{due}"
            put = await self._api("PUT", f"/api/v1/jobs/probe/instances/{key}", {}, **self._headers)
            assert put.status == 201, put.json
            async with asyncio.timeout(60):
                while len(self._receiver.hits) <= number:
                    await asyncio.sleep(0.001)
            starts.append(time.time() - due)
            asked = time.monotonic()
            assert (await self._api("GET", "/api/v1/jobs/probe", **self._headers)).status == 200
            reads.append(time.monotonic() - asked)
        return Delays(p95(starts), p95(reads))


def p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95) - 1]


async def add_due(url: str, api: Client, key: str) -> None:
    """Add the jobs of the dead names and the due instances, half of them for the dead names."""
    names = ["backlog", *(f"dead-{number}" for number in range(DEAD_NAMES))]
    for name in names:
        document = job_document(name, "http://127.0.0.1:9/" if name == "backlog" else f"http://{name}.x{name}.example/")
        made = await api("POST", "/api/v1/jobs", document, Authorization=f"Bearer {key}")
        assert made.status == 201, made.json
    connection = await asyncpg.connect(url, server_settings={"horai.tenant": "noisy"})
    try:
        for name in names:
            left = DUE // 2 if name == "backlog" else DUE // 2 // DEAD_NAMES
            while left > 0:
                await connection.execute(
                    "select horai.enqueue_many($1, array_fill('{}'::json, array[$2::int]))", name, min(left, 10_000)
                )
                left -= 10_000
    finally:
        await connection.close()


async def key_of(api: Client, platform: str, tenant: str) -> str:
    """Create a tenant, and return the key of its admin."""
    headers = {"Authorization": f"Bearer {platform}"}
    assert (await api("POST", "/api/v1/tenants", {"name": tenant}, **headers)).status == 201
    networks = {"quotas": {"callbackNetworks": ["0.0.0.0/0", "127.0.0.0/8"]}}
    assert (await api("PATCH", f"/api/v1/tenants/{tenant}", networks, **headers)).status == 200
    made = await api("POST", "/api/v1/keys", {"role": "admin", "tenant": tenant, "name": tenant}, **headers)
    assert made.status == 201, made.json
    return made.json["key"]


@asynccontextmanager
async def noise(api: Client, key: str, log: Path) -> AsyncGenerator[None]:
    log.touch()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = Forked([api.base, key, str(SCALE)], environment, log, "noise")
    try:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n", log.read_text()
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.timeout(1800 if IS_LONG else 300)
async def test_C2b_a_tenant_that_uses_all_it_can_at_most_doubles_the_delays_of_another(
    short_place: Path, url: str
) -> None:
    with silent_name_server(short_place) as ServerWithNames.names:
        place = short_place / "noisy"
        server = ServerWithNames(
            place, "--database-url", url, "--require-key", "--callback-allow", "127.0.0.0/8"
        ).start()
        try:
            async with Receiver() as receiver, aiohttp.ClientSession() as session:
                api = Client(server.base, session)
                platform = server.lines[0].split(": ")[1].strip()
                noisy, quiet = await key_of(api, platform, "noisy"), await key_of(api, platform, "quiet")
                tenant = QuietTenant(api, quiet, receiver)
                await tenant.open()
                await tenant.delays()  # connections are open and statements prepared
                alone = await tenant.delays()
                async with noise(api, noisy, short_place / "noise.log"):
                    await add_due(url, api, noisy)
                    beside = await tenant.delays()
        finally:
            assert server.stop() == 0
    print(
        f"start {alone.start * 1000:.1f} -> {beside.start * 1000:.1f} ms, read {alone.read * 1000:.1f} -> {beside.read * 1000:.1f} ms"
    )
    if IS_LONG:
        assert beside.start <= 2 * max(alone.start, LEAST)
        assert beside.read <= 2 * max(alone.read, LEAST)
