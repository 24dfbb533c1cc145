"""The state file about database clusters: the system identifier and the highest timeline of each.

One small JSON file, shared by all processes of the machine that use the same state directory. With it, a process
recognises a server that returns on an earlier timeline even after a restart, and while the server with the later
timeline is away.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

ENVIRONMENT = "HORAI_STATE_DIR"
FILE = "databases.json"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A cluster by its system identifier, and its highest timeline seen."""

    system: str
    timeline: int


def state_dir(environ: Mapping[str, str]) -> Path:
    """Return the directory of the state file: HORAI_STATE_DIR, for root /var/lib/horai-state, else below the home."""
    if named := environ.get(ENVIRONMENT):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/lib/horai-state")
    home = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "horai"


@dataclass(frozen=True, slots=True)
class Sightings:
    """The state file of one directory. Entries are kept by `place`: hosts and database, without user and password."""

    directory: Path

    @property
    def file(self) -> Path:
        return self.directory / FILE

    def claim_revoker(self, place: str) -> Sighting | None:
        """Return the cluster last seen at a place, with the highest timeline of that cluster at any place."""
        found = _read(self.file)
        here = found.get(place)
        if here is None:
            return None
        return Sighting(here.system, _highest(found, here.system))

    def timeline_of(self, system: str) -> int:
        """Return the highest timeline of a cluster; 0 if it was never seen."""
        return _highest(_read(self.file), system)

    def note(self, place: str, seen: Sighting) -> None:
        """Store a sighting.

        The timeline of a cluster never decreases. Without a writable directory, only log a warning.
        """
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.directory / f"{FILE}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                found = _read(self.file)
                found[place] = Sighting(seen.system, max(seen.timeline, _highest(found, seen.system)))
                _write(self.file, found)
        except OSError as error:
            log.warning(
                "the state file cannot be written: after a restart an old primary is recognised only beside the new one",
                file=str(self.file),
                error=str(error),
                hint=f"set {ENVIRONMENT} to a directory that this process can write",
            )


def _highest(found: Mapping[str, Sighting], system: str) -> int:
    return max((each.timeline for each in found.values() if each.system == system), default=0)


def _read(file: Path) -> dict[str, Sighting]:
    """Return the entries of the file; none if it is damaged, because that must not prevent a start."""
    try:
        kept = json.loads(file.read_text("utf-8"))
        return {str(place): Sighting(str(each["system"]), int(each["timeline"])) for place, each in kept.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("the state file cannot be read", file=str(file), error=str(error))
        return {}


def _write(file: Path, found: Mapping[str, Sighting]) -> None:
    """Replace the file as a whole; a power cut leaves the old one or the new one."""
    fresh = file.with_suffix(f".{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8") as writing:
            json.dump({place: asdict(each) for place, each in found.items()}, writing, indent=1)
            writing.flush()
            os.fsync(writing.fileno())
        fresh.replace(file)
    finally:
        with suppress(FileNotFoundError):
            fresh.unlink()
