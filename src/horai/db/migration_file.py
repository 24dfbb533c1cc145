"""The migration files of this version."""

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from horai.db.sql_script import ScriptStatement, split_script

FOLDER: Traversable = resources.files("horai.db").joinpath("migrations")
OUTSIDE = "-- no-transaction"
_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        """Return False for a file that PostgreSQL refuses in a transaction (`create index concurrently`)."""
        return not self.text.startswith(OUTSIDE)

    @property
    def label(self) -> str:
        """Return the name of the file without its ending."""
        return f"{self.number:04d}_{self.name}"

    def statements(self) -> tuple[ScriptStatement, ...]:
        """Return the statements of the file, in order."""
        return split_script(self.text)


def migrations() -> list[Migration]:
    """Return all migrations of this version, in order."""
    found: list[Migration] = []
    for file in FOLDER.iterdir():
        if match := _FILE.match(file.name):
            found.append(Migration(int(match[1]), match[2], file.read_text("utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def newest_known() -> int:
    """Return the number of the newest migration of this version."""
    return migrations()[-1].number
