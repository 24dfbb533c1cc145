"""A node and a client on the machine of a member of the cluster, which is a network namespace that can be cut off."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forked import HORAI
from harness import NodeProcess

from faults.outside import until

WRITER = Path(__file__).with_name("isolated_writer.py")


@dataclass
class Neighbour:
    """The client beside a member. `acknowledged_at` has the wall clock of each write that its node acknowledged."""

    acknowledged_at: dict[int, float] = field(default_factory=dict[int, float])

    async def until_more(self, count: int, within: float) -> None:
        """Return when so many more writes were acknowledged."""
        wanted = len(self.acknowledged_at) + count

        async def are_enough() -> bool:
            return len(self.acknowledged_at) >= wanted

        await until(are_enough, within, f"{count} more writes of the node beside a member")

    def between(self, since: float, before: float) -> list[float]:
        """The times of the writes that were acknowledged in this span, in their order."""
        return sorted(at for at in self.acknowledged_at.values() if since <= at < before)


def inside(node: NodeProcess, namespace: str) -> NodeProcess:
    """The same node, in a network namespace."""

    def launch(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> "subprocess.Popen[str]":
        command = ["ip", "netns", "exec", namespace, HORAI, *arguments]
        with log.open("a") as errors:
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)

    node.launch = launch
    return node


@asynccontextmanager
async def _client(namespace: str, base: str, name: str) -> AsyncGenerator[Neighbour]:
    """A client in a namespace, which writes through the node there."""
    made = Neighbour()
    process = await asyncio.create_subprocess_exec(
        "ip", "netns", "exec", namespace, sys.executable, WRITER, base, name, stdout=asyncio.subprocess.PIPE
    )

    async def read() -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            told = json.loads(line)
            made.acknowledged_at[int(told["id"])] = told["at"]

    reading = asyncio.create_task(read())
    try:
        yield made
    finally:
        process.kill()
        await process.wait()
        await reading


@asynccontextmanager
async def nodes_beside(
    place: Path, url: str, members: Mapping[str, Mapping[str, Any]], *flags: str
) -> AsyncGenerator[dict[str, NodeProcess]]:
    """A node with the API on the machine of each member, by the name of the member. They must stop cleanly."""
    nodes: dict[str, NodeProcess] = {}
    try:
        for name, member in members.items():
            home = place / f"beside-{name}"
            made = NodeProcess(home, url, "--roles", "api", *flags, HORAI_STATE_DIR=str(home / "state"))
            nodes[name] = inside(made, member["namespace"])
            await asyncio.to_thread(nodes[name].start)
        yield nodes
    except BaseException:
        for node in nodes.values():
            node.kill()
        raise
    for node in nodes.values():
        assert await asyncio.to_thread(node.stop) == 0


@asynccontextmanager
async def writing_beside(
    nodes: Mapping[str, NodeProcess], members: Mapping[str, Mapping[str, Any]]
) -> AsyncGenerator[dict[str, Neighbour]]:
    """A client beside each of these nodes, by the name of the member."""
    async with AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(_client(members[name]["namespace"], node.base, f"beside-{name}"))
            for name, node in nodes.items()
        }
        for client in clients.values():
            await client.until_more(20, 30)
        yield clients


def cable(name: str, direction: str) -> None:
    """Plug or unplug the network of a member: `up` or `down`."""
    done = subprocess.run(["ip", "link", "set", name, direction], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
