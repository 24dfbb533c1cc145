"""`?archived=true`: a page of instances from the archive."""

from fastapi import Response

from horai.api.answer import answer
from horai.api.cursors import cursor_after
from horai.api.filters import states_of
from horai.core.errors import FieldError, Invalid
from horai.core.states import FINAL
from horai.db import archives
from horai.db.instance_lists import PageStart
from horai.operations.archive_place import ArchiveStore
from horai.operations.archive_reads import LONGEST_RANGE, ArchivedFilter, list_archived
from horai.operations.readable_values import readable_instances
from horai.operations.scope import Scope
from horai.text import Hint, Wrong
from horai.wire.instances import InstanceList, Narrowed


def require_archive(store: ArchiveStore | None, field: str = "archived") -> ArchiveStore:
    """Return the archive. Raises `Invalid` if this server has none."""
    if store is None:
        raise Invalid.field(field, Wrong.NO_ARCHIVE(), Hint.START_WITH_ARCHIVE())
    return store


async def archived_page(
    archive: ArchiveStore | None, scope: Scope, asked: Narrowed, job: str | None, start: PageStart, limit: int
) -> Response:
    """Return a page of archived instances that match. Sealed values are opened for the roles that may see them."""
    store, only = require_archive(archive), _filter(asked, job)
    async with scope.read() as connection:
        files = await archives.files_of_instances(connection, scope.tenant_id, only.since, only.until)
    page = await list_archived(store, files, only, start, limit)
    async with scope.read() as connection:
        rows = await readable_instances(connection, scope, page.rows)
    cursor = None if page.next is None else cursor_after(*page.next)
    return answer(InstanceList.encode(items=rows, next_cursor=cursor))


def _filter(asked: Narrowed, job: str | None) -> ArchivedFilter:
    """Return the filter. Raises `Invalid` for one that the archive does not have, and for a range that is open or too long."""
    days = LONGEST_RANGE.days
    refused = [
        FieldError(name, Wrong.NOT_IN_ARCHIVE())
        for name in ("tag", "payload", "when")
        if getattr(asked, name) is not None
    ]
    if refused:
        raise Invalid.fields(refused, Hint.FILTER_ARCHIVE())
    since, until = asked.from_, asked.to
    if since is None or until is None:
        field = "from" if since is None else "to"
        raise Invalid.field(field, Wrong.MISSING(), Hint.BOUND_ARCHIVE(days=days))
    if since >= until:
        raise Invalid.field("from", Wrong.NOT_BEFORE_TO(), Hint.BOUND_ARCHIVE(days=days))
    if until - since > LONGEST_RANGE:
        raise Invalid.field("to", Wrong.RANGE_TOO_LONG(days=days), Hint.BOUND_ARCHIVE(days=days))
    states = FINAL if asked.state is None else states_of(asked.state) & FINAL
    if not states:
        raise Invalid.field("state", Wrong.LIVE_NOT_ARCHIVED(), Hint.FILTER_ARCHIVE())
    return ArchivedFilter(since, until, states, job, asked.key, asked.key_prefix, asked.queue, asked.error_code)
