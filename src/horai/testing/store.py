"""What a harness asks of its database; the statements behind these calls stand in virtual_time.sql and outlook.sql."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from typing import NamedTuple

from horai.db.pool import Connection


class DuePlace(NamedTuple):
    """A lane in a shard where something can be claimed, since when, and how much."""

    shard: int
    lane: int
    due: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class StoreOutlook:
    """What there is to do at this moment, and when there will be something next. Equal ones: nothing has happened."""

    places: tuple[DuePlace, ...] = ()
    next_at: datetime | None = None
    chores: dict[str, int] = field(default_factory=dict[str, int])
    """How much else is due: of `schedule`, `node`, `relane`, `catchup`, `gate`, `run`, and how far any `backfill` has come."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is due now."""
        return not self.places and not self.chores


class CameTo(NamedTuple):
    """What has become of an instance, by its last claim."""

    id: int
    fence: int
    state: str
    result: str | None
    error_code: str | None
    error_msg: str | None


def script(name: str) -> str:
    """The text of a file of ours."""
    return resources.files("horai.testing").joinpath(name).read_text("utf-8")


async def show_virtual_time(connection: Connection) -> None:
    """Lets the functions of the migrations go by the virtual time, and adds what a harness asks."""
    await connection.execute("select virtual_time.show_to_functions_of('horai')")
    await connection.execute(script("outlook.sql"))


async def move_to(connection: Connection, moment: datetime) -> None:
    """The database's time from now on."""
    await connection.execute("select virtual_time.move_to($1)", moment)


async def outlook(connection: Connection) -> StoreOutlook:
    """What is due, and what comes next."""
    rows = await connection.fetch("select kind, shard, lane, at, rows from virtual_time.outlook()")
    return StoreOutlook(
        tuple(sorted(DuePlace(*row) for kind, *row in rows if kind == "place")),
        next((at for kind, _, _, at, _ in rows if kind == "next"), None),
        {kind: count for kind, _, _, _, count in rows if kind not in {"place", "next"}},
    )


async def came_to(connection: Connection, ids: Sequence[int]) -> list[CameTo]:
    """What has become of these instances."""
    rows = await connection.fetch("select * from virtual_time.came_to($1)", list(ids))
    return [CameTo(*row.values()) for row in rows]
