"""Backups as the command line shows them."""

import json
from collections.abc import Mapping
from pathlib import Path

from horai.cli.show import console, say, table
from horai.embedded.backup_manifest import MadeBackup, list_backups

COLUMNS = ("BACKUP", "BEGAN", "SIZE", "HORAI", "SCHEMA", "KEYS")


def show_backups(directory: Path, as_json: bool) -> None:
    """Print the complete backups of a directory."""
    found = list_backups(directory)
    if as_json:
        print(json.dumps({"items": [facts(one) for one in found]}))
        return
    if not found:
        say("None.")
        return
    rows = (
        (
            one.path.name,
            f"{one.manifest.started_at:%Y-%m-%d %H:%M:%S}Z",
            f"{one.manifest.size / 1_000_000:,.0f} MB",
            one.manifest.horai,
            str(one.manifest.content.schema),
            ", ".join(one.manifest.keys) or "none",
        )
        for one in found
    )
    console().print(table(COLUMNS, rows))


def facts(made: MadeBackup) -> dict[str, object]:
    """Return the facts of a backup for JSON."""
    manifest = made.manifest
    return {
        "path": str(made.path),
        "startedAt": manifest.started_at.isoformat(),
        "finishedAt": manifest.finished_at.isoformat(),
        "size": manifest.size,
        "lsn": manifest.end_lsn,
        "horai": manifest.horai,
        "schema": manifest.content.schema,
        "counts": dict(manifest.content.counts),
        "keys": list(manifest.keys),
    }


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts for people."""
    return ", ".join(f"{number} {name}" for name, number in counts.items())
