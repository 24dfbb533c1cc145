"""Three real nats-servers in one cluster, whose streams have three replicas."""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ClusterInfo
from nats_server import NatsServer, publisher
from rows import until

NAMES = ("one", "two", "three")


class NatsCluster:
    """Its servers by name. Each can be killed and started again on its port."""

    def __init__(self, place: Path) -> None:
        ports = _free_ports(2 * len(NAMES))
        routes = ", ".join(f"nats-route://127.0.0.1:{port}" for port in ports[: len(NAMES)])
        self.servers = {
            name: NatsServer(
                place / name,
                f"server_name: {name}\ncluster {{ name: tests, listen: 127.0.0.1:{route}, routes: [{routes}] }}\n",
                port,
            )
            for name, route, port in zip(NAMES, ports[: len(NAMES)], ports[len(NAMES) :], strict=True)
        }

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.servers.values())

    @asynccontextmanager
    async def publisher(self) -> AsyncGenerator[JetStreamContext]:
        async with publisher(*self.servers.values()) as stream:
            yield stream

    async def add_stream(self, stream: JetStreamContext, name: str) -> None:
        """Add a stream with three replicas as soon as the cluster has a leader, and wait for its own."""

        async def is_added() -> bool:
            try:
                await stream.add_stream(name=name, subjects=[f"{name}.>"], num_replicas=len(NAMES))
            except (NatsError, TimeoutError):
                return False
            return True

        await until(is_added, 60)
        await self.until_whole(stream, name)

    async def leader(self, stream: JetStreamContext, name: str) -> str | None:
        found = await self._state(stream, name)
        return None if found is None else found.leader

    async def until_whole(self, stream: JetStreamContext, name: str) -> None:
        """Wait until the stream has a leader and two replicas that have everything."""

        async def is_whole() -> bool:
            found = await self._state(stream, name)
            replicas = [] if found is None or not found.leader else found.replicas or []
            return len(replicas) == 2 and all(peer.current and not peer.offline for peer in replicas)

        await until(is_whole, 60)

    async def _state(self, stream: JetStreamContext, name: str) -> ClusterInfo | None:
        try:
            return (await stream.stream_info(name)).cluster
        except (NatsError, TimeoutError):
            return None


@contextmanager
def nats_cluster(place: Path) -> Generator[NatsCluster]:
    """Start the servers, and kill those that run at the end."""
    cluster = NatsCluster(place)
    try:
        for server in cluster.servers.values():
            server.start()
        yield cluster
    finally:
        for server in cluster.servers.values():
            server.kill()


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
