"""The reference cluster: one etcd and two PostgreSQL under Patroni, as processes of this machine, without containers.

    apt-get install --no-install-recommends patroni etcd-server
    python deploy/patroni/reference.py DIRECTORY

It creates the cluster in DIRECTORY, which must be empty, migrates the database, prints `Ready: URL` with the URL of
Horai's nodes, and stops everything on SIGINT and SIGTERM. DIRECTORY/cluster.json lists the members. With `--namespaces`,
each member has its own network namespace, so that it can be cut off:

    ip link set CABLE down

The PostgreSQL binaries are those that Horai brings along, or those of `--bin-dir`. If root starts it, the
processes run as an unprivileged user. This is a reference to read and to try: on real machines, each member is a machine
with its own Patroni, and etcd has three members.
"""

import argparse
import asyncio
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from socket import create_server
from string import Template
from typing import Any

from horai.db.isolation import grant_roles
from horai.db.migrate import migrate
from horai.db.pool import Platform, connect
from horai.embedded.account import Account, account_for
from horai.embedded.area import Area
from horai.embedded.binaries import binaries_for

TEMPLATE = Path(__file__).with_name("patroni.yml")
NAMES = ("pg1", "pg2")
"""Not `first`: PostgreSQL reads that as a keyword in `synchronous_standby_names`."""
DATABASE, NODE = "horai", "horai_node"
READY_WITHIN = 120.0
STOP_WITHIN = 60.0
LOOK_EVERY = 0.5
FOLLOWED = "select exists (select from pg_stat_replication where replay_lsn >= $1::text::pg_lsn)"
PACKAGES = "apt-get install --no-install-recommends patroni etcd-server"


@dataclass(frozen=True)
class Member:
    """One PostgreSQL with its Patroni."""

    name: str
    host: str
    port: int
    api_port: int
    directory: str
    namespace: str | None = None
    cable: str | None = None
    """The end of its network cable on this machine."""

    @property
    def api(self) -> str:
        return f"http://{self.host}:{self.api_port}"


@dataclass(frozen=True)
class Passwords:
    """The passwords of a cluster."""

    superuser_password: str
    replication_password: str
    node_password: str


def program(name: str) -> str:
    """Return the path of a program of the Debian packages."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/sbin")
    if found is None:
        sys.exit(f"error: {name} is not installed\nhint: {PACKAGES}")
    return found


def free_ports(host: str, count: int) -> list[int]:
    """Return ports that no process uses now."""
    with ExitStack() as stack:
        return [stack.enter_context(create_server((host, 0))).getsockname()[1] for _ in range(count)]


def private(directory: Path, account: Account) -> Path:
    """Create a directory that only the user of PostgreSQL can enter."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if account.is_other:
        os.chown(directory, account.uid, account.gid)
    return directory


def write_private(file: Path, text: str, account: Account) -> None:
    """Write a file with passwords, for the user of PostgreSQL only."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(text)
        if account.is_other:
            os.fchown(output.fileno(), account.uid, account.gid)


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: ip {' '.join(words)}: {done.stderr.strip()}\nhint: namespaces need root and iproute2")


@contextmanager
def namespaces(names: Sequence[str]) -> Iterator[dict[str, tuple[str, str, str]]]:
    """Make a network with one namespace per name. Yields name → (namespace, cable, address); "" is this machine."""
    number = os.getpid() % 250
    bridge, net = f"horai{number}br", f"10.214.{number}"
    made: dict[str, tuple[str, str, str]] = {"": ("", "", f"{net}.1")}
    with ExitStack() as stack:
        ip("link", "add", bridge, "type", "bridge")
        stack.callback(ip, "link", "delete", bridge)
        ip("address", "add", f"{net}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for host, name in enumerate(names, 11):
            space, cable = f"horai-{number}-{name}", f"horai{number}{name[:4]}"
            ip("netns", "add", space)
            stack.callback(ip, "netns", "delete", space)  # the cable goes with it
            ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", cable, "master", bridge, "up")
            ip("-netns", space, "address", "add", f"{net}.{host}/24", "dev", "eth0")
            ip("-netns", space, "link", "set", "eth0", "up")
            ip("-netns", space, "link", "set", "lo", "up")
            made[name] = (space, cable, f"{net}.{host}")
        yield made


class Cluster:
    """The processes of a cluster."""

    def __init__(self, root: Path, account: Account, bin_dir: Path, *, synchronous: bool) -> None:
        self.root = root
        self.account = account
        self.bin_dir = bin_dir
        self.synchronous = synchronous
        self.passwords = Passwords(*(secrets.token_hex(16) for _ in range(3)))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def spawn(self, name: str, namespace: str | None, *command: str | Path) -> None:
        """Start a process as the user of PostgreSQL, in its namespace if it has one. Its output goes to NAME.log."""
        with (self.root / f"{name}.log").open("ab") as log:
            if namespace:
                user = ("--reuid", str(self.account.uid), "--regid", str(self.account.gid), "--clear-groups")
                within = ["ip", "netns", "exec", namespace, program("setpriv"), *user, *map(str, command)]
                self.processes[name] = subprocess.Popen(
                    within, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
                )
            else:
                self.processes[name] = self.account.spawn([str(word) for word in command], log)

    def start_etcd(self, host: str) -> str:
        """Start etcd, and return its address for clients."""
        client, peer = free_ports(host, 2)
        urls = {
            "listen-client-urls": f"http://{host}:{client}",
            "advertise-client-urls": f"http://{host}:{client}",
            "listen-peer-urls": f"http://127.0.0.1:{peer}",
            "initial-advertise-peer-urls": f"http://127.0.0.1:{peer}",
            "initial-cluster": f"etcd=http://127.0.0.1:{peer}",
        }
        data = private(self.root / "etcd", self.account)
        flags = [f"--{name}={value}" for name, value in urls.items()]
        # The version of Debian 12 wants this variable on arm64 and ignores it elsewhere.
        self.spawn(
            "etcd",
            None,
            "env",
            "ETCD_UNSUPPORTED_ARCH=arm64",
            program("etcd"),
            "--name=etcd",
            f"--data-dir={data}",
            *flags,
        )
        return f"{host}:{client}"

    def start_member(self, member: Member, etcd: str) -> None:
        """Write the configuration of a member, and start its Patroni, which starts PostgreSQL."""
        private(Path(member.directory), self.account)
        filled = Template(TEMPLATE.read_text()).substitute(
            asdict(member) | asdict(self.passwords),
            etcd=etcd,
            bin_dir=self.bin_dir,
            synchronous=str(self.synchronous).lower(),
        )
        config = self.root / f"{member.name}.yml"
        write_private(config, filled, self.account)
        self.spawn(member.name, member.namespace, program("patroni"), config)

    def check(self) -> None:
        """Exit if a process has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                sys.exit(f"error: {name} ended with {process.returncode}; see {self.root / name}.log")

    def stop(self) -> None:
        """Stop the members, then etcd. A paused or hanging process is killed."""
        for name in (*NAMES, "etcd"):
            if (process := self.processes.get(name)) is not None and process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()


def roles(member: Member) -> dict[str, str]:
    """Return the role of each running member, as this one sees the cluster; none if it does not answer."""
    try:
        with urllib.request.urlopen(f"{member.api}/cluster", timeout=2) as response:
            told: Any = json.load(response)
    except (OSError, urllib.error.URLError, ValueError):
        return {}
    return {each["name"]: each["role"] for each in told["members"] if each["state"] in ("running", "streaming")}


async def until_ready(cluster: Cluster, members: Sequence[Member]) -> None:
    """Return when there is a leader, and a standby that is synchronous if the cluster is."""
    standby = {"sync_standby"} if cluster.synchronous else {"replica", "sync_standby"}
    for _ in range(round(READY_WITHIN / LOOK_EVERY)):
        found = set((await asyncio.to_thread(roles, members[0])).values())
        if "leader" in found and found & standby:
            return
        cluster.check()
        await asyncio.sleep(LOOK_EVERY)
    sys.exit(f"error: the cluster was not ready in time; see {cluster.root}/*.log")


def url_of(members: Sequence[Member], login: str, password: str, database: str = DATABASE) -> str:
    """Return a URL that names all members."""
    hosts = ",".join(f"{member.host}:{member.port}" for member in members)
    return f"postgresql://{login}:{password}@{hosts}/{database}?sslmode=disable"


async def prepare(cluster: Cluster, members: Sequence[Member]) -> str:
    """Create and migrate the database, and create the login of nodes; return the URL of nodes."""
    os.environ["HORAI_STATE_DIR"] = str(cluster.root / "state")
    connection = await connect(
        url_of(members, "postgres", cluster.passwords.superuser_password, "postgres"), "reference"
    )
    try:
        await connection.execute(f"create database {DATABASE}")
    finally:
        await connection.close()
    connection = await connect(url_of(members, "postgres", cluster.passwords.superuser_password), "reference")
    try:
        await connection.execute(f"create role {NODE} login password '{cluster.passwords.node_password}'")
        await grant_roles(connection, NODE)
        await migrate(connection)
        await until_followed(cluster, connection)
    finally:
        await connection.close()
    return url_of(members, NODE, cluster.passwords.node_password)


async def until_followed(cluster: Cluster, connection: Platform) -> None:
    """Return when the standby has replayed all that was written so far.

    Patroni lists a standby as running before it streams. Without this wait, a primary that fails in its first seconds
    leaves a standby without the database, or without the login of nodes.
    """
    written = await connection.fetchval("select pg_current_wal_lsn()::text")
    for _ in range(round(READY_WITHIN / LOOK_EVERY)):
        if await connection.fetchval(FOLLOWED, written):
            return
        cluster.check()
        await asyncio.sleep(LOOK_EVERY)
    sys.exit(f"error: no standby followed the primary in time; see {cluster.root}/*.log")


async def serve(cluster: Cluster, members: Sequence[Member]) -> None:
    """Prepare the database, print its URL, and wait for a signal."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    readying = asyncio.create_task(get_ready(cluster, members))
    told = asyncio.create_task(stop.wait())
    await asyncio.wait({readying, told}, return_when=asyncio.FIRST_COMPLETED)
    if not readying.done():
        readying.cancel()
        return
    print(f"Ready: {readying.result()}", flush=True)
    await told


async def get_ready(cluster: Cluster, members: Sequence[Member]) -> str:
    """Wait for the cluster, prepare its database, and list its members; return the URL of nodes."""
    await until_ready(cluster, members)
    url = await prepare(cluster, members)
    listed = [asdict(member) | {"api": member.api} for member in members]
    told = {
        "url": url,
        "superuser": url_of(members, "postgres", cluster.passwords.superuser_password),
        "members": listed,
    }
    write_private(cluster.root / "cluster.json", json.dumps(told, indent=1), cluster.account)
    return url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path, help="directory of the cluster; a short path, for the sockets")
    parser.add_argument("--bin-dir", type=Path, help="PostgreSQL binaries (those that Horai brings along)")
    parser.add_argument("--asynchronous", action="store_true", help="commits do not wait for the standby")
    parser.add_argument("--namespaces", action="store_true", help="each member in its own network namespace (root)")
    chosen = parser.parse_args()
    for name in ("patroni", "etcd"):
        program(name)
    root, account = chosen.directory.resolve(), account_for()
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    if any(root.iterdir()):
        sys.exit(f"error: {root} is not empty\nhint: give a new directory")
    bin_dir = chosen.bin_dir or binaries_for(Area.at(root), account)
    cluster = Cluster(root, account, bin_dir, synchronous=not chosen.asynchronous)
    with ExitStack() as stack:
        spaces = stack.enter_context(namespaces(NAMES)) if chosen.namespaces else {}
        stack.callback(cluster.stop)
        etcd = cluster.start_etcd(spaces[""][2] if spaces else "127.0.0.1")
        ports = iter(free_ports("127.0.0.1", 2 * len(NAMES)))
        members = [
            Member(name, host, next(ports), next(ports), str(root / name), space or None, cable or None)
            for name in NAMES
            for space, cable, host in [spaces.get(name, ("", "", "127.0.0.1"))]
        ]
        for member in members:
            cluster.start_member(member, etcd)
        asyncio.run(serve(cluster, members))


if __name__ == "__main__":
    main()
