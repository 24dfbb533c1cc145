"""Migrations made for a test: files in a temporary directory, after all those of this version."""

import shutil
from pathlib import Path

import pytest

from horai.db import migration_file
from horai.db.migrate import newest_known

OWN = Path(str(migration_file.FOLDER))


def made_after(directory: Path, *texts: str) -> list[str]:
    """Copy the migrations of this version into the directory, and add these; return the labels of the added ones."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in OWN.glob("*.sql"):
        shutil.copy(file, directory)
    first = newest_known() + 1
    labels = [f"{first + number:04d}_made_{number}" for number in range(len(texts))]
    for label, text in zip(labels, texts, strict=True):
        (directory / f"{label}.sql").write_text(text)
    return labels


def use(monkeypatch: pytest.MonkeyPatch, directory: Path, *texts: str) -> list[str]:
    """Let this process know the migrations of the directory, made from these texts."""
    labels = made_after(directory, *texts)
    monkeypatch.setattr("horai.db.migration_file.FOLDER", directory)
    return labels
