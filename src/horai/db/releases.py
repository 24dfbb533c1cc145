"""Minor versions and their migrations: which versions of Horai may share a database.

A node works on the schema of its own minor version and of the next one. So a cluster is upgraded node by node, one minor
version at a time: the first new node migrates, and the old ones go on until they are replaced.
"""

import re
from typing import NamedTuple

from horai import __version__

_VERSION = re.compile(r"^(\d+)\.(\d+)")


class MinorVersion(NamedTuple):
    """A minor version, such as 0.1."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


FIRST_MIGRATIONS = {"0.1": 1}
"""The number of the first migration of each minor version. The version in `horai/__init__.py` must be among them."""


def minor_version(version: str) -> MinorVersion | None:
    """Return the minor version of a version; None if the text is no version."""
    found = _VERSION.match(version)
    return MinorVersion(int(found[1]), int(found[2])) if found else None


def own_minor() -> MinorVersion:
    """Return the minor version of this Horai."""
    found = minor_version(__version__)
    assert found is not None  # noqa: S101 - a test compares it with FIRST_MIGRATIONS
    return found


def minor_of(number: int) -> str:
    """Return the minor version that a migration belongs to."""
    begun = [(first, name) for name, first in FIRST_MIGRATIONS.items() if first <= number]
    return max(begun)[1]


def may_work_on(node: MinorVersion, schema: MinorVersion) -> bool:
    """Return whether a node works on a schema: an older one is migrated, a newer one at most one minor version ahead."""
    return schema <= node or (schema.major == node.major and schema.minor == node.minor + 1)
