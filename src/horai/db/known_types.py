"""Connections that learn the types of PostgreSQL itself once per process.

asyncpg asks the server about each array type that a statement of a new connection uses, such as bigint[]. The question is
a recursive query over the catalogs: a cold session spends 10 ms of CPU on it, more than on its first statements.
"""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import asyncpg

FIRST_UNFIXED = 10_000
"""Below it, PostgreSQL's sources assign the id of a type: it means the same in every database of every version."""
NOT_ASKED = SimpleNamespace(name="known")
"""Stands for the statement of the question. A named one leaves the unnamed statement of the caller as it is."""
_known: dict[int, tuple[Any, ...]] = {}


class InformedConnection(asyncpg.Connection):  # pyright: ignore[reportMissingTypeArgument] — generic only for type checkers
    """A connection that asks only about types that no connection of this process has asked about."""

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> tuple[list[Any], Any]:
        """Return the descriptions of the types, and the statement that asked for them."""
        wanted = {*typeoids}
        if wanted <= _known.keys():
            return [row for oid in wanted for row in _known[oid]], NOT_ASKED
        driver: Any = super()  # its types do not show the method
        rows, statement = await driver._introspect_types(wanted, timeout)
        if all(row["oid"] < FIRST_UNFIXED for row in rows):
            _known.update(dict.fromkeys(wanted, tuple(rows)))
        return rows, statement
