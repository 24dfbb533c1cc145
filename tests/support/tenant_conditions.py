"""The tenant conditions of statements, tried one at a time at the moment when a statement runs.

Before a statement runs, it is repeated for a tenant that has nothing: as it is, without the condition by a role that sees every
row, and without the condition by the role of requests. All of it is undone.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import asyncpg
from asyncpg.connection import Connection

from horai.db.catalog import CATALOG

_CONDITION = re.compile(r"(?<![\w.])(?:\w+\.)?tenant_id = \$(\d+)(?:::int)?\b")
_NAME = re.compile(r"/\* (\w+) \*/")

Condition = tuple[str, int]
"""A statement, and the number of the condition in it."""
Answer = tuple[str, tuple[Any, ...]]

CONDITIONS: frozenset[Condition] = frozenset(
    (name, at) for name, each in CATALOG.items() for at in range(len(_CONDITION.findall(each.text)))
)


class Trials:
    """The conditions that were tried: those whose loss shows without policies, and those whose loss policies make good."""

    def __init__(self, nothing: int) -> None:
        self._nothing = nothing
        self.noticed: set[Condition] = set()
        self.walled: set[Condition] = set()
        self.unwalled: set[Condition] = set()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Try the conditions of every statement that any connection of this process runs."""
        driver: Any = Connection  # all statements pass through its `_execute`
        run, trials = driver._execute, self

        async def tried(self: Any, query: str, args: Any, *rest: Any, **more: Any) -> Any:
            name = _NAME.match(query)
            if name is not None and trials.is_wanted(name[1]):
                await trials.attempt(self, name[1], tuple(args))
            return await run(self, query, args, *rest, **more)

        driver._execute = tried
        try:
            yield
        finally:
            driver._execute = run

    def is_wanted(self, name: str) -> bool:
        return any(condition not in self.noticed for condition in _conditions_of(name))

    async def attempt(self, connection: Any, name: str, arguments: tuple[Any, ...]) -> None:
        text, foreign = CATALOG[name].text, self._for_nothing(name, arguments)
        role = await _value(connection, "select current_user")
        own = await self._answer(connection, None, text, arguments)
        kept = await self._answer(connection, None, text, foreign)
        if own == kept or kept != await self._answer(connection, None, text, foreign):
            return  # the arguments find nothing, or each run makes new ids
        for condition in _conditions_of(name):
            lost = _without(text, condition[1])
            if await self._answer(connection, None, lost, foreign) == kept:
                lost = _without(text, None)
                if await self._answer(connection, None, lost, foreign) == kept:
                    continue
            self.noticed.add(condition)
            if role == "horai_api":
                is_walled = await self._answer(connection, role, lost, foreign) == kept
                (self.walled if is_walled else self.unwalled).add(condition)

    def _for_nothing(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        places = {int(place) - 1 for place in _CONDITION.findall(CATALOG[name].text)}
        return tuple(self._nothing if at in places else argument for at, argument in enumerate(arguments))

    async def _answer(self, connection: Any, role: str | None, text: str, arguments: tuple[Any, ...]) -> Answer:
        """Return the command tag and the rows of a statement, or its error. `role` None sees every row."""
        change = connection.transaction()
        await change.start()
        try:
            await _value(connection, "select set_config('role', $1, true)", role or "none")
            await _value(connection, "select set_config('horai.tenant_id', $1, true)", str(self._nothing))
            prepared = await connection.prepare(text)
            rows = await prepared.fetch(*arguments)
            return prepared.get_statusmsg(), tuple(tuple(row) for row in rows)
        except asyncpg.PostgresError as error:
            return type(error).__name__, ()
        finally:
            await change.rollback()


def _conditions_of(name: str) -> list[Condition]:
    return [(name, at) for at in range(len(_CONDITION.findall(CATALOG[name].text)))] if name in CATALOG else []


def _without(text: str, at: int | None) -> str:
    """Return the statement without its condition number `at`; with None, without all of them."""
    count = -1

    def replaced(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"(${match[1]}::int is not null)" if at in {None, count} else match[0]

    return _CONDITION.sub(replaced, text)


async def _value(connection: Any, text: str, *arguments: str) -> Any:
    prepared = await connection.prepare(text)
    return await prepared.fetchval(*arguments)
