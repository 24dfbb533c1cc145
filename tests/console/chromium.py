"""Choose the Chromium that the visits run in, by the machine's architecture.

The npm package holds one binary, for Linux on x86-64; on any other machine it must not be executed. There the visits use a
Chromium or Chrome that is installed; on Debian as root the package `chromium` is installed. `HORAI_BROWSER` names a
browser to use instead.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
MAC_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
VARIABLE = "HORAI_BROWSER"
ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts that the choice depends on."""

    system: str
    architecture: str
    is_root: bool
    has_apt: bool
    find: Callable[[str], str | None]
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Packaged:
    """Use the browser of the npm package."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Use the browser at `path`."""

    path: str


@dataclass(frozen=True, slots=True)
class Installable:
    """Install the Debian package `chromium`, then choose again."""


@dataclass(frozen=True, slots=True)
class Missing:
    """No browser can be used; `reason` says what to install."""

    reason: str


Choice = Packaged | Installed | Installable | Missing


def this_machine() -> Machine:
    """Read the facts of the machine that runs the tests."""
    return Machine(
        platform.system(),
        platform.machine().lower(),
        os.geteuid() == 0,
        shutil.which("apt-get") is not None,
        shutil.which,
        os.environ.get(VARIABLE),
    )


def choose(machine: Machine) -> Choice:
    """Choose a browser; the first of: `HORAI_BROWSER`, the npm package, an installed browser, the Debian package."""
    architecture = ALIASES.get(machine.architecture, machine.architecture)
    if machine.variable:
        if _is_executable_on(Path(machine.variable), architecture):
            return Installed(machine.variable)
        return Missing(f"{VARIABLE}={machine.variable} is not an executable for {architecture}")
    if (machine.system, architecture) == ("Linux", "x86_64"):
        return Packaged()
    places = [path for name in NAMES if (path := machine.find(name))]
    if machine.system == "Darwin":
        places += [path for path in MAC_PLACES if machine.find(path)]
    for path in places:
        if _is_executable_on(Path(path), architecture):
            return Installed(path)
    if machine.system == "Linux" and machine.is_root and machine.has_apt:
        return Installable()
    command = "`apt-get install chromium` as root" if machine.has_apt else "Chromium or Chrome"
    return Missing(f"no browser for {machine.system} on {architecture}: install {command}, or set {VARIABLE}")


def _is_executable_on(path: Path, architecture: str) -> bool:
    """Tell whether the file can be executed and, if it is an ELF binary, was built for this architecture."""
    if not os.access(path, os.X_OK) or path.is_dir():
        return False
    with path.open("rb") as file:
        header = file.read(20)
    if header[:4] != b"\x7fELF":
        return True  # a script, such as Debian's /usr/bin/chromium, or a Mach-O binary
    return ELF_MACHINES.get(int.from_bytes(header[18:20], "little")) == architecture


def environment(choose_now: Callable[[], Choice] = lambda: choose(this_machine())) -> Mapping[str, str] | Missing:
    """Return the variables that tell the visits which browser to start; installs the Debian package if necessary."""
    choice = choose_now()
    if isinstance(choice, Installable):
        failure = _install()
        choice = choose_now() if failure is None else Missing(failure)
    match choice:
        case Packaged():
            return {}
        case Installed(path):
            return {VARIABLE: path}
        case Missing():
            return choice
        case Installable():
            return Missing("apt-get installed the package chromium, and no browser was found afterwards")


def _install() -> str | None:
    """Install the Debian package; return the reason if this fails."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}"
    return None
