"""Read archived instances: a page of a tenant's files, in the order of lists.

A read has two steps. The first finds the positions of the page: it reads only the columns of the filter, and only as many
groups of rows as the page needs, because files are sorted by fire time, the newest first. The second reads all columns of
one or two groups.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog

from horai.core.calls import instance_key, slot_key
from horai.core.errors import ArchiveUnavailable
from horai.core.job import Priority
from horai.core.limits import LISTED_PAYLOAD_BYTES
from horai.core.states import CancelReason, State
from horai.db.archives import FileOfInstances
from horai.db.instance_lists import InstancePage, PageStart, rows_that_fit
from horai.db.instance_queries import InstanceRow
from horai.operations.archive_place import ArchiveStore
from horai.operations.archive_tables import TABLES
from horai.operations.file_cache import CachedFile, CacheFull, StillFetching
from horai.operations.parquet import ParquetFailed, ParquetSession, quoted
from horai.text import Hint, Refused

log = structlog.get_logger(__name__)

LONGEST_RANGE = timedelta(days=31)
"""The longest range of fire times that one read covers."""
_READERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="horai archive")
"""Two reads at a time: each thread has a session with its own memory."""
_OF_THREAD = threading.local()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = TABLES["instance_history"].columns
_TOLD = ", ".join(
    f"case when strlen(payload) <= {LISTED_PAYLOAD_BYTES} then payload end" if column.name == "payload" else column.told
    for column in _COLUMNS
)
_NAMES = tuple(column.name for column in _COLUMNS)


@dataclass(frozen=True, slots=True)
class ArchivedFilter:
    """The filter of a list of archived instances; None means no condition. The job is an id or a name."""

    since: datetime
    until: datetime
    states: frozenset[State]
    job: str | None = None
    key: str | None = None
    key_prefix: str | None = None
    queue: str | None = None
    error_code: str | None = None


async def list_archived(
    store: ArchiveStore, files: Sequence[FileOfInstances], only: ArchivedFilter, start: PageStart, limit: int
) -> InstancePage:
    """Return a page of the instances in these files. Raises `ArchiveUnavailable` if a file cannot be read."""
    if not files:
        return InstancePage([], None)
    loop = asyncio.get_running_loop()
    async with _opened(store, files if start.upwards else files[::-1]) as places:
        found = await loop.run_in_executor(_READERS, _read_page, places, only, start, limit)
    rows = rows_that_fit(found)
    is_last = len(found) < limit and len(rows) == len(found)
    return InstancePage(rows, None if is_last else (rows[-1].fire_time, rows[-1].id))


@asynccontextmanager
async def _opened(store: ArchiveStore, files: Sequence[FileOfInstances]) -> AsyncGenerator[list[Path]]:
    """Yield local places of files. Raises `ArchiveUnavailable` if one cannot be fetched or read."""
    wanted = [CachedFile(file.path, file.bytes, file.sha256) for file in files]
    async with AsyncExitStack() as stack:
        try:
            places = await stack.enter_async_context(store.reading(wanted))
        except StillFetching as error:
            told = Refused.ARCHIVE_FILE_ON_ITS_WAY(path=files[0].path)
            raise ArchiveUnavailable(told, Hint.FETCH_ARCHIVE_AGAIN()) from error
        except CacheFull as error:
            raise ArchiveUnavailable(Refused.ARCHIVE_CACHE_FULL(), Hint.NARROW_ARCHIVE()) from error
        except FileNotFoundError as error:
            raise _unavailable(files[0].path) from error
        except OSError as error:
            log.warning("archive file cannot be read", path=files[0].path, error=str(error))
            told = Refused.ARCHIVE_STORAGE_FAILED(path=files[0].path)
            raise ArchiveUnavailable(told, Hint.CHECK_ARCHIVE_STORAGE()) from error
        try:
            yield places
        except ParquetFailed as error:
            raise _unavailable(files[0].path) from error


def _unavailable(path: str) -> ArchiveUnavailable:
    return ArchiveUnavailable(Refused.ARCHIVE_FILE_GONE(path=path), Hint.CHECK_ARCHIVE_DIR())


def _session() -> ParquetSession:
    """Return the session of this thread: to open one takes longer than to read a page."""
    if not hasattr(_OF_THREAD, "session"):
        _OF_THREAD.session = ParquetSession(threads=2)
    return _OF_THREAD.session


def _read_page(places: Sequence[Path], only: ArchivedFilter, start: PageStart, limit: int) -> list[InstanceRow]:
    listed, session = "[" + ", ".join(map(quoted, places)) + "]", _session()
    source = f"read_parquet({listed}, union_by_name=true)"
    order = "fire_time, id" if start.upwards else "fire_time desc, id desc"
    positions = _positions(session, source, _edges(session, listed, only, start), only, start, limit)
    if not positions:
        return []
    times = [_at(micros) for micros, _ in positions]
    ids = ", ".join(str(id_) for _, id_ in positions)
    rows = session.run(
        f"select strlen(payload), {_TOLD} from {source} where fire_time >= {_literal(min(times))}"  # noqa: S608
        f" and fire_time <= {_literal(max(times))} and id in ({ids}) order by {order}"
    )
    return [_instance(size, dict(zip(_NAMES, row, strict=True))) for size, *row in rows]


def _edges(session: ParquetSession, listed: str, only: ArchivedFilter, start: PageStart) -> list[datetime]:
    """Return fire times up to which a list with the oldest first is read: those of 1, 4, 16, … groups of rows, then all.

    The newest first is the order of the files: DuckDB itself stops to read when the page is full. Few instances have a
    given key, so that there is nothing to stop for.
    """
    if not start.upwards:
        return [only.since]
    if only.key is not None:
        return [only.until]
    rows = session.run(
        "select epoch_us(stats_max_value::timestamptz)"  # noqa: S608
        f" from parquet_metadata({listed}) where path_in_schema = 'fire_time'"
    )
    low = max(only.since, start.at[0])
    within = sorted(at for (micros,) in rows if low <= (at := _at(micros)) <= only.until)
    counts = [4**power - 1 for power in range(len(within)) if 4**power <= len(within)]
    return [*(within[count] for count in counts), only.until]


def _positions(
    session: ParquetSession,
    source: str,
    edges: Sequence[datetime],
    only: ArchivedFilter,
    start: PageStart,
    limit: int,
) -> list[tuple[int, int]]:
    """Return fire time and id of the page. If it is not full up to an edge, the next edge is tried; the last ends the range."""
    conditions, values = _conditions(only, start)
    order, sign = ("fire_time, id", "<=") if start.upwards else ("fire_time desc, id desc", ">=")
    found: list[Any] = []
    for edge in edges:
        found = session.run(
            f"select epoch_us(fire_time), id from {source} where fire_time {sign} {_literal(edge)} and {conditions}"  # noqa: S608
            f" order by {order} limit {limit}",
            values,
        )
        if len(found) == limit:
            break
    return found


def _conditions(only: ArchivedFilter, start: PageStart) -> tuple[str, list[str]]:
    """Return the condition of a page, and the values of its parameters."""
    at, id_ = start.at
    sign = ">" if start.upwards else "<"
    states = ", ".join(f"'{state.name}'" for state in sorted(only.states))
    parts = [
        f"fire_time >= {_literal(only.since)}",
        f"fire_time < {_literal(only.until)}",
        f"fire_time {sign}= {_literal(at)}",
        f"(fire_time {sign} {_literal(at)} or id {sign} {id_})",
        f"state in ({states})",
    ]
    values = list[str]()
    for condition, value in (
        ("job = ? or job_id::varchar = ?", only.job),
        ("key = ?", only.key),
        ("starts_with(key, ?)", only.key_prefix),
        ("queue = ?", only.queue),
        ("error_code = ?", only.error_code),
    ):
        if value is not None:
            parts.append(f"({condition})")
            values += [value] * condition.count("?")
    return " and ".join(parts), values


def _literal(at: datetime) -> str:
    return f"timestamptz '{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00'"


def _at(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else _at(micros)


def _instance(payload_size: int | None, row: dict[str, Any]) -> InstanceRow:
    job_id, slot, fire_time = row["job_id"], row["slot"], _at(row["fire_time"])
    idem = slot_key(job_id, fire_time, slot) if slot >= 0 else instance_key(job_id, _at(row["born_for"]), row["id"])
    texts = (row["payload"], row["result"], row["error_msg"], row["key"])
    return InstanceRow(
        id=row["id"],
        job_id=job_id,
        job=row["job"],
        key=row["key"],
        state=State[row["state"]],
        reason=None if row["reason"] is None else CancelReason[row["reason"]],
        fire_time=fire_time,
        execute_time=_at(row["execute_time"]),
        due=None,
        attempt=row["attempt"],
        retry_count=row["retry_count"],
        fence=row["fence"],
        node=row["node_name"],
        incarnation=row["node"],
        version=row["version"],
        supersedes=row["supersedes"],
        replay_of=row["replay_of"],
        queue=row["queue"] or "",
        priority=Priority[row["priority"] or "normal"],
        payload=row["payload"],
        payload_size=payload_size,
        result=row["result"],
        error_code=row["error_code"],
        error_msg=row["error_msg"],
        created_at=_at(row["created_at"]),
        claimed_at=_time(row["claimed_at"]),
        finished_at=_time(row["finished_at"]),
        idem_key=idem,
        bytes=1024 + sum(len(text.encode()) for text in texts if text is not None),
        is_encrypted=row["encrypted"],
    )


async def read_day(
    store: ArchiveStore, file: FileOfInstances, after: tuple[int, int] | None, limit: int
) -> list[dict[str, Any]]:
    """Return instances of a file after a position (fire time in microseconds, id), newest first, with all columns."""
    loop = asyncio.get_running_loop()
    async with _opened(store, [file]) as [place]:
        return await loop.run_in_executor(_READERS, _read_rows, place, after, limit)


def _read_rows(place: Path, after: tuple[int, int] | None, limit: int) -> list[dict[str, Any]]:
    told = ", ".join(column.told for column in _COLUMNS)
    condition = "true"
    if after is not None:
        at, id_ = _literal(_at(after[0])), after[1]
        condition = f"fire_time <= {at} and (fire_time < {at} or id < {id_})"
    rows = _session().run(
        f"select {told} from read_parquet({quoted(place)}) where {condition} order by fire_time desc, id desc limit {limit}"  # noqa: S608
    )
    return [dict(zip(_NAMES, row, strict=True)) for row in rows]
