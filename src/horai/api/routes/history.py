"""The history of a key: the events of all its instances in one list."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.cursors import chain_cursor, cursor_after_link
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.errors import NotFound
from horai.core.limits import KEY_LIMIT
from horai.core.put import check_key
from horai.core.roles import AccessRole
from horai.db.key_history import FIRST, NO_SEQ, ChainEntry, chain_of_key
from horai.operations.scope import require_job
from horai.text import Hint, Refused
from horai.wire.encode import Encoded
from horai.wire.history import HistoryEntry, HistoryList

router = APIRouter(prefix="/api/v1", tags=["instances"], route_class=RoleRoute)

KeyPath = Annotated[str, Path(min_length=1, max_length=KEY_LIMIT)]


@router.get("/jobs/{job}/instances/{key:path}/history", responses={200: {"model": HistoryList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_history(scope: ScopeDep, job: str, key: KeyPath, query: Annotated[PageQuery, Query()]) -> Response:
    """Read the history of a key: the events of all its instances in one list, oldest first."""
    after = chain_cursor(query.cursor)
    async with scope.read() as connection:
        found = await require_job(connection, scope, job)
        entries = await chain_of_key(connection, found.id, check_key(key), after, query.limit)
    if not entries and after == FIRST:
        raise NotFound(Refused.NO_HISTORY(key=key[:128], job=found.name), Hint.NEVER_USED())
    cursor = cursor_after_link(entries[-1].link) if len(entries) == query.limit else None
    return answer(HistoryList.encode(items=[_encode_entry(entry) for entry in entries], next_cursor=cursor))


def _encode_entry(entry: ChainEntry) -> Encoded:
    seq = None if entry.link.seq == NO_SEQ else entry.link.seq
    return HistoryEntry.encode(entry.link, seq=seq, kind=entry.kind, data=entry.data)
