"""A second machine: a network namespace of Linux, joined to this machine by a virtual cable."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

NETWORK = "10.213.{}.{}"
"""An unused private network for each process of a test run."""


@dataclass(frozen=True, slots=True)
class SecondMachine:
    """A machine that shares the files of this one, and reaches it by a network only."""

    name: str
    address: str
    """Its own address."""
    peer: str
    """The address of this machine on the cable."""

    def command(self, *words: str) -> list[str]:
        """Return the command that runs these words on the second machine."""
        return ["ip", "netns", "exec", self.name, *words]


def why_not() -> str | None:
    """Return the reason why this machine cannot make a second one."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    if shutil.which("ip") is None:
        return "there is no `ip`: install the Debian package iproute2"
    return None


@contextmanager
def second_machine() -> Generator[SecondMachine]:
    """Make a second machine, and remove it with its cable at the end."""
    number = os.getpid() % 250
    made = SecondMachine(f"horai-{os.getpid()}", NETWORK.format(number, 2), NETWORK.format(number, 1))
    cable = f"horai{number}"
    _ip("netns", "add", made.name)
    try:
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", made.name)
        _ip("address", "add", f"{made.peer}/30", "dev", cable)
        _ip("link", "set", cable, "up")
        for words in (
            ("address", "add", f"{made.address}/30", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-netns", made.name, *words)
        yield made
    finally:
        _ip("netns", "delete", made.name)  # the cable goes with it


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
