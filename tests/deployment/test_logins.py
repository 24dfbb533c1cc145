"""The scripts of the compose file, on a PostgreSQL of their own: secrets, logins, migration, and a node that owns nothing."""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from socket import create_server
from subprocess import PIPE, STDOUT

import asyncpg
import pytest
from deployed import COMPOSE, compose
from forked import HORAI, ForkedPopen
from terminal import Terminal, clean_environment

from horai.embedded.account import Account, account_for
from horai.embedded.area import Area
from horai.embedded.binaries import binaries_for
from horai.features.audit.signing import load_key
from horai.operations.keyring import load_encryption_keys

SCRIPTS = COMPOSE.parent
PATIENCE = 60


@pytest.fixture(scope="module")
def home(short_place: Path) -> Iterator[Path]:
    """A directory whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir=short_place) as directory:
        place = Path(directory)
        place.chmod(0o755)
        yield place


@pytest.fixture(scope="module")
def secrets(home: Path) -> Path:
    """The directory that secrets.sh fills, without those who may not enter it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    place = home / "secrets"
    subprocess.run(["sh", SCRIPTS / "secrets.sh", place], check=True, capture_output=True)
    return place


@pytest.fixture(scope="module")
def server(home: Path, secrets: Path) -> Iterator[tuple[Path, int]]:
    """A PostgreSQL that Horai has never seen: the directory of its programs, and its port."""
    place, password = home, secrets / "superuser-password"
    account, area = account_for(), Area.at(place / "area")
    area.root.mkdir(mode=0o755)
    programs = binaries_for(area, account)
    inside = place / "server"
    inside.mkdir(mode=0o700)
    known = inside / "password"
    known.write_text(password.read_text())
    for path in (inside, known):
        os.chown(path, account.uid, account.gid)
    with create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    words = ["--no-sync", "--username=postgres", f"--pwfile={known}", "--auth-local=trust", "--auth-host=scram-sha-256"]
    done = account.run([programs / "initdb", f"--pgdata={inside}/data", *words])
    assert done.returncode == 0, done.stdout
    settings = ["-c", f"unix_socket_directories={inside}", "-c", "listen_addresses=127.0.0.1"]
    with (place / "log").open("wb") as log:
        process = account.spawn([programs / "postgres", "-D", inside / "data", "-p", str(port), *settings], log)
    try:
        _until_ready(account, programs, inside, port)
        yield programs, port
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _until_ready(account: Account, programs: Path, home: Path, port: int) -> None:
    words = [programs / "psql", "--host", home, "--port", str(port), "--username", "postgres", "--command"]
    deadline = time.monotonic() + PATIENCE
    while (done := account.run([*words, "create database horai"])).returncode != 0:
        assert time.monotonic() < deadline, done.stdout
        time.sleep(0.05)
    assert account.run([*words, "create database other"]).returncode == 0


def at(home: Path, name: str, port: int) -> Path:
    """Return a file with the URL of a login, with the address of the server of this test."""
    moved = home / name
    moved.write_text((home / "secrets" / name).read_text().replace("@database:5432/", f"@127.0.0.1:{port}/"))
    return moved


def test_the_script_makes_every_secret_of_the_compose_file_once(secrets: Path) -> None:
    named = {Path(each["file"]).name for each in compose()["secrets"].values()}
    before = {path.name: path.read_bytes() for path in secrets.iterdir()}
    subprocess.run(["sh", SCRIPTS / "secrets.sh", secrets], check=True, capture_output=True)

    assert set(before) == named
    assert {path.name: path.read_bytes() for path in secrets.iterdir()} == before, "a second run keeps them"
    assert secrets.stat().st_mode & 0o777 == 0o700
    assert load_key(str(secrets / "audit-key")) is not None
    assert len(load_encryption_keys(str(secrets / "encryption-key"))) == 1
    assert "-----BEGIN CERTIFICATE-----" in (secrets / "tls-cert").read_text()


def test_a_node_works_with_the_logins_of_the_compose_file_and_cannot_change_the_schema(
    home: Path, secrets: Path, server: tuple[Path, int]
) -> None:
    programs, port = server
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "PGHOST": str(home / "server"), "PGPORT": str(port)}
    environment |= {"POSTGRES_DB": "horai", "SECRETS": str(secrets)}
    done = subprocess.run(["sh", SCRIPTS / "logins.sh"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    node_url, owner_url, state = at(home, "node-url", port), at(home, "owner-url", port), home / "state"

    migrated = Terminal(HORAI_STATE_DIR=str(state), HORAI_DATABASE_URL_FILE=str(owner_url))("migrate")

    assert migrated.code == 0, migrated.err
    _run_node(node_url, secrets, state)
    asyncio.run(_owns_nothing(node_url.read_text()))
    assert (state / "databases.json").exists()


def _run_node(url: Path, secrets: Path, state: Path) -> None:
    """Start the node of the compose file, on another port, until it is ready."""
    (words,) = [each["command"] for name, each in compose()["services"].items() if name == "server"]
    environment = clean_environment() | {
        "HORAI_STATE_DIR": str(state),
        "HORAI_DATABASE_URL_FILE": str(url),
        "HORAI_ENCRYPTION_KEY_FILE": str(secrets / "encryption-key"),
        "HORAI_AUDIT_KEY_FILE": str(secrets / "audit-key"),
        "HORAI_TLS_CERT": str(secrets / "tls-cert"),
        "HORAI_TLS_KEY": str(secrets / "tls-key"),
        "HORAI_HOST": "0.0.0.0",
        "HORAI_PORT": "0",
    }
    process = ForkedPopen([HORAI, *words], env=environment, stdin=PIPE, stdout=PIPE, stderr=STDOUT, text=True)
    try:
        told = ""
        assert process.stdout is not None
        for line in process.stdout:
            told += line
            if "Horai is ready" in line:
                break
        assert re.search(r"Key of the platform-admin, shown only now: \S+", told), told
        assert "Horai is ready: https://0.0.0.0:" in told
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


async def _owns_nothing(url: str) -> None:
    node = await asyncpg.connect(url.strip())
    try:
        assert await node.fetchval("select not rolsuper and not rolcreaterole from pg_roles where rolname = user")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await node.execute("drop table horai.job")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await node.execute("create schema mine")
    finally:
        await node.close()


def test_the_admin_url_may_be_in_a_file(home: Path, secrets: Path, server: tuple[Path, int]) -> None:
    _, port = server
    password = (secrets / "superuser-password").read_text().strip()
    admin = f"postgresql://postgres:{password}@127.0.0.1:{port}/other"
    asyncio.run(_make_owner(admin))
    (home / "admin-url").write_text(admin + "\n")
    url = f"postgresql://owner:x@127.0.0.1:{port}/other"
    owner = Terminal(HORAI_STATE_DIR=str(home / "state"), HORAI_DATABASE_URL=url)

    refused = owner("migrate")
    migrated = owner("migrate", HORAI_ADMIN_URL_FILE=str(home / "admin-url"))

    assert refused.code == 1
    assert "cannot create them" in refused.err
    assert migrated.code == 0, migrated.err


async def _make_owner(admin: str) -> None:
    connection = await asyncpg.connect(admin)
    try:
        await connection.execute("create role owner login password 'x'; alter database other owner to owner")
    finally:
        await connection.close()
