"""The manifest of a backup: its file makes a directory a complete backup, and lists every byte of it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from horai.embedded.errors import BackupRefused

FORMAT = 1
MANIFEST = "manifest.json"
PREFIX = "horai-"
LIST_BACKUPS = "`horai backup DIR --list` lists the complete backups of a directory."


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """One file of a backup: its size in bytes and its SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DatabaseContent:
    """The content that a PostgreSQL found when it was started on a copy.

    `violations` counts violated invariants by their titles; None if the schema is of another version than this Horai.
    """

    cluster: str
    schema: int
    postgresql: str
    counts: Mapping[str, int]
    violations: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """The facts of one backup. Every write that was acknowledged before `started_at` is in it."""

    horai: str
    started_at: datetime
    finished_at: datetime
    start_lsn: str
    end_lsn: str
    content: DatabaseContent
    directories: tuple[str, ...]
    files: Mapping[str, CopiedFile]
    keys: tuple[str, ...] = ()
    """Names of key files in the folder `keys`; usually none."""

    @property
    def size(self) -> int:
        """Return the size of all files, in bytes."""
        return sum(file.size for file in self.files.values())

    def as_json(self) -> str:
        """Return the text of the manifest file."""
        times = {"started_at": self.started_at.isoformat(), "finished_at": self.finished_at.isoformat()}
        document = {"format": FORMAT, "size": self.size, **asdict(self), **times}
        return json.dumps(document, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class MadeBackup:
    """A complete backup and the directory that holds it."""

    path: Path
    manifest: BackupManifest


def read_backup(path: Path) -> MadeBackup:
    """Return the backup in a directory. Raises `BackupRefused` if the directory holds no complete backup."""
    try:
        text = (path / MANIFEST).read_text("utf-8")
    except FileNotFoundError as error:
        raise BackupRefused(f"{path} is not a complete backup: it has no {MANIFEST}.", LIST_BACKUPS) from error
    except NotADirectoryError as error:
        raise BackupRefused(f"{path} is not a directory.", LIST_BACKUPS) from error
    except PermissionError as error:
        raise BackupRefused(
            f"{path} cannot be read by this user.", "Run the command as its owner, or as root."
        ) from error
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise BackupRefused(
                f"{path} has the backup format {document['format']}; this Horai reads {FORMAT}.",
                "Use the Horai that made it.",
            )
        return MadeBackup(path, _manifest(document))
    except (ValueError, KeyError, TypeError) as error:
        raise BackupRefused(f"The {MANIFEST} of {path} is damaged.", "Use another backup.") from error


def _manifest(document: dict[str, Any]) -> BackupManifest:
    return BackupManifest(
        horai=document["horai"],
        started_at=datetime.fromisoformat(document["started_at"]),
        finished_at=datetime.fromisoformat(document["finished_at"]),
        start_lsn=document["start_lsn"],
        end_lsn=document["end_lsn"],
        content=DatabaseContent(**document["content"]),
        directories=tuple(document["directories"]),
        files={name: CopiedFile(**file) for name, file in document["files"].items()},
        keys=tuple(document["keys"]),
    )


def newest_backup(path: Path) -> MadeBackup:
    """Return the backup in a directory, or the newest one of a directory of backups. Raises `BackupRefused`."""
    found = [] if (path / MANIFEST).exists() else list_backups(path)
    return found[-1] if found else read_backup(path)


def list_backups(into: Path) -> list[MadeBackup]:
    """Return the complete backups of a directory, oldest first."""
    found: list[MadeBackup] = []
    for path in into.glob(f"{PREFIX}*") if into.is_dir() else ():
        if (path / MANIFEST).is_file():
            found.append(read_backup(path))
    return sorted(found, key=lambda backup: backup.manifest.started_at)


def surplus(backups: list[MadeBackup], cluster: str, keep: int) -> list[MadeBackup]:
    """Return the backups of a cluster beyond the newest `keep`. Those of other clusters are never among them."""
    own = [backup for backup in backups if backup.manifest.content.cluster == cluster]
    return own[: max(len(own) - keep, 0)]
