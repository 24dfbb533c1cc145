"""The wheel in an environment of its own, as the image has it: the packages of the lock, no root, nothing writable."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployed import DEPLOY
from hatchling.builders.wheel import WheelBuilder

from horai import __version__
from horai.embedded.account import Account, account_for

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
NOT_NEEDED = shutil.ignore_patterns(
    "site-packages", "test", "idlelib", "tkinter", "turtledemo", "__pycache__", "config-*"
)
PATIENCE = 180.0
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs a process as another user")


@pytest.fixture(scope="module")
def place(short_place: Path) -> Iterator[Path]:
    """A directory that every user can enter and only we can write."""
    with tempfile.TemporaryDirectory(dir=short_place) as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture(scope="module")
def account() -> Account:
    """An ordinary user: this one, or for root the one that runs PostgreSQL."""
    return account_for()


def python_for(account: Account, place: Path) -> Path:
    """Return a Python that the user can run: this one, or a copy of it if the user cannot enter its directory."""
    base = Path(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = base / "bin" / name
    if account.run([own, "-c", "import asyncio, ssl"]).returncode == 0:
        return own
    shutil.copytree(base / "lib" / name, place / "python" / "lib" / name, ignore=NOT_NEEDED, symlinks=True)
    (place / "python" / "bin").mkdir()
    shutil.copy2(own, place / "python" / "bin" / name)
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy2(library, place / "python" / "lib" / library.name)
    return place / "python" / "bin" / name


@pytest.fixture(scope="module")
def installed(place: Path, account: Account) -> Path:
    """Return the `bin` directory of an environment with the packages of the lock and the wheel."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(place / "dist"), versions=["standard"], clean=False)
    python = python_for(account, place)
    subprocess.run(
        [python, "-m", "venv", "--without-pip", place / "venv"], env=environment(place / "venv" / "bin"), check=True
    )
    install = [UV, "pip", "install", "--quiet", "--python", place / "venv" / "bin" / "python"]
    subprocess.run([*install, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True)
    subprocess.run([*install, "--no-deps", wheel], check=True)
    return place / "venv" / "bin"


def environment(installed: Path, **more: str) -> dict[str, str]:
    """Return the variables of a process. A copy of Python looks for its library beside itself."""
    libraries = installed.parents[1] / "python" / "lib"
    copied = {"LD_LIBRARY_PATH": str(libraries)} if libraries.exists() else {}
    return {
        "PATH": "/usr/bin:/bin",
        **copied,
        "HOME": "/nonexistent",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        **more,
    }


def as_user(account: Account) -> dict[str, object]:
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account.is_other else {}


def wait_for_address(process: "subprocess.Popen[str]", log: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while (found := re.search(r"^Horai is ready: (\S+)$", log.read_text(), re.MULTILINE)) is None:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[1]


def test_the_installed_wheel_runs_from_a_read_only_directory_without_root(
    place: Path, account: Account, installed: Path
) -> None:
    closed, data, log = place / "closed", place / "data", place / "log"
    closed.mkdir()
    data.mkdir(mode=0o700)
    if account.is_other:
        os.chown(data, account.uid, account.gid)
    closed.chmod(0o555)
    command = [installed / "horai", "up", "--port", "0", "--data-dir", data / "database"]
    own = environment(installed, HORAI_STATE_DIR=str(data / "state"))
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=closed,
            env=own,
            stdout=output,
            stderr=output,
            text=True,
            stdin=subprocess.DEVNULL,
            **as_user(account),  # type: ignore[call-overload]
        )
    try:
        port = wait_for_address(process, log).rpartition(":")[2]
        status = Path(f"/proc/{process.pid}/status").read_text()
        asked = [installed / "python", DEPLOY / "container" / "ready.py"]
        done = subprocess.run(
            asked, env=environment(installed, HORAI_PORT=port), capture_output=True, text=True, check=False
        )
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)

    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^Uid:\t(\d+)", status, re.MULTILINE)[1] == str(account.uid) != "0"  # type: ignore[index]
    assert code == 0, log.read_text()
    assert list(closed.iterdir()) == []
    assert "cannot be written" not in log.read_text()


def test_the_installed_wheel_has_all_packages_that_it_needs(installed: Path) -> None:
    told = subprocess.run(
        [installed / "horai", "--version"], env=environment(installed), capture_output=True, text=True, check=True
    )
    checked = subprocess.run(
        [UV, "pip", "check", "--python", installed / "python"], capture_output=True, text=True, check=False
    )

    assert told.stdout == f"horai {__version__}\n"
    assert checked.returncode == 0, checked.stderr
