"""Verification of the chain, and the pages of an export."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from horai.db.pool import Platform
from horai.features.audit import store
from horai.features.audit.rules import (
    NO_MONTH,
    ChainFault,
    FaultKind,
    Seal,
    SealedRow,
    faults_of_link,
    faults_of_rows,
)
from horai.features.audit.signing import AuditKey
from horai.features.audit.store import Anchor, AuditFilter, AuditRow, RowsOf, StoredSeal
from horai.operations.scope import PlatformScope

PAGE = 500
"""Rows that are read and hashed at once: 25 ms at 50 µs each, reading included, on a loaded machine with 2 cores."""
SEALS_AT_ONCE = 10
MOST_FAULTS = 100
FIRST = (datetime(1970, 1, 1, tzinfo=UTC), -1)
_LOWEST = (0, -1)


@dataclass(slots=True)
class ChainReport:
    """The result of a verification. `next_seal` is the seal to continue with; None if the chain was read to its end.

    `signed_to` is the last seal whose signature this node's key verifies; `kept_from` the first month that retention
    has not dropped; `unsealed` the number of rows after the last seal.
    """

    seals: int = 0
    rows: int = 0
    dropped: int = 0
    head: str | None = None
    signed_to: int | None = None
    kept_from: date | None = None
    unsealed: int | None = None
    next_seal: int | None = None
    faults: list[ChainFault] = field(default_factory=list[ChainFault])

    @property
    def is_intact(self) -> bool:
        """Return whether no fault was found in the part that was read."""
        return not self.faults


async def verify_chain(
    scope: PlatformScope, key: AuditKey | None, head: tuple[int, bytes] | None = None, start: int = 1
) -> ChainReport:
    """Recompute the chain from the seal `start` on, for at most `scope.longest` seconds.

    `head` is a head that was published earlier: a chain that was cut or rewritten since does not contain it.
    """
    async with scope.read() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        anchor = await store.newest_anchor(connection)
        check = _Check(connection, key, anchor, time.monotonic() + scope.longest)
        if head is not None:
            await check.compare_head(*head)
        return await check.run(start)


class _Check:
    """One verification, in one snapshot."""

    def __init__(self, connection: Platform, key: AuditKey | None, anchor: Anchor | None, ends_at: float) -> None:
        self._connection = connection
        self._key = key
        self._anchor = anchor
        self._ends_at = ends_at
        self._kept_from = NO_MONTH
        self._last: Seal | None = None
        self.report = ChainReport()
        if anchor is not None:
            year, month = divmod(anchor.month.year * 12 + anchor.month.month, 12)
            self.report.kept_from = date(year, month + 1, 1)
            self._kept_from = year * 100 + month + 1

    async def compare_head(self, n: int, hash_: bytes) -> None:
        """Add a fault if the chain does not contain this head. A head below the first seal cannot be checked."""
        found = await store.next_seals(self._connection, n - 1, 1)
        if not found:
            self._add(ChainFault(FaultKind.CUT, n))
        elif found[0].seal.n == n and found[0].seal.hash != hash_:
            self._add(ChainFault(FaultKind.HEAD_DIFFERS, n))
        elif found[0].seal.n > n and (self._anchor is None or n > self._anchor.seal):
            self._add(ChainFault(FaultKind.CUT, n))

    async def run(self, start: int) -> ChainReport:
        """Read the chain to its end, or until the time or the number of faults is used up."""
        await self._begin(start)
        after = start - 1
        while seals := await store.next_seals(self._connection, after, SEALS_AT_ONCE):
            for stored in seals:
                if self.report.seals and (time.monotonic() > self._ends_at or len(self.report.faults) >= MOST_FAULTS):
                    self.report.next_seal = stored.seal.n
                    return self.report
                await self._check(stored)
                after = stored.seal.n
        self._end()
        sealed_to = 0 if self._last is None else self._last.to_xid
        self.report.unsealed = await store.count_unsealed(self._connection, sealed_to)
        return self.report

    async def _begin(self, start: int) -> None:
        """Find the seal before `start`. At the beginning of the chain, check that nothing is missing before it."""
        before = await store.next_seals(self._connection, start - 2, 1) if start > 1 else []
        if before and before[0].seal.n == start - 1:
            self._last = before[0].seal
            return
        first = await store.next_seals(self._connection, 0, 1)
        oldest = 1 if self._anchor is None else self._anchor.seal
        if not first:
            if self._anchor is not None:
                self._add(ChainFault(FaultKind.CUT, oldest))
            return
        seal = first[0].seal
        if seal.n > oldest:
            self._add(ChainFault(FaultKind.CUT, oldest))
        if seal.from_xid > 0:
            early = await store.rows_between(self._connection, 0, seal.from_xid - 1, _LOWEST, MOST_FAULTS)
            for row in early:
                self._add(ChainFault(FaultKind.INSERTED, seal.n, row.id))

    async def _check(self, stored: StoredSeal) -> None:
        seal = stored.seal
        for fault in faults_of_link(self._last, seal):
            self._add(fault)
        is_anchor = self._anchor is not None and self._anchor.seal == seal.n
        if stored.rows != seal.rows or (is_anchor and self._anchor is not None and self._anchor.hash != seal.hash):
            self._add(ChainFault(FaultKind.SEAL_ALTERED, seal.n))
        self._check_signature(stored)
        rows = await self._rows_of(seal)
        for fault in faults_of_rows(seal, rows, self._kept_from):
            self._add(fault)
        self._last, self.report.head = seal, seal.head
        self.report.seals += 1
        self.report.rows += len(rows)
        self.report.dropped += max(seal.rows - len(rows), 0)

    async def _rows_of(self, seal: Seal) -> list[SealedRow]:
        """Return the rows of the seal's interval. A seal with far more rows than entries is not read to its end."""
        rows, after = list[SealedRow](), _LOWEST
        while page := await store.rows_between(self._connection, seal.from_xid, seal.to_xid, after, PAGE):
            rows += [row.as_sealed() for row in page]
            after = (page[-1].xid, page[-1].id)
            if len(page) < PAGE or len(rows) > seal.rows + MOST_FAULTS:
                break
        return rows

    def _check_signature(self, stored: StoredSeal) -> None:
        """Verify a signature of this node's key. Those of other keys, such as earlier ones, are not known here."""
        if self._key is None or stored.signature is None or stored.key_id != self._key.id:
            return
        if self._key.verifies(stored.seal.head, stored.signature):
            self.report.signed_to = stored.seal.n
        else:
            self._add(ChainFault(FaultKind.SIGNATURE_WRONG, stored.seal.n))

    def _end(self) -> None:
        """Add a fault if seals follow the last one that this node's key has signed: a signature covers those before it."""
        last = self._last
        if self._key is None or last is None or not self.report.seals or self.report.signed_to == last.n:
            return
        first_open = last.n - self.report.seals + 1 if self.report.signed_to is None else self.report.signed_to + 1
        self._add(ChainFault(FaultKind.UNSIGNED, first_open))

    def _add(self, fault: ChainFault) -> None:
        if len(self.report.faults) < MOST_FAULTS:
            self.report.faults.append(fault)


async def export_pages(scope: PlatformScope, whose: RowsOf, only: AuditFilter) -> AsyncIterator[list[AuditRow]]:
    """Yield the rows that match, oldest first, in pages. No connection is held while a page is sent."""
    after = FIRST
    while True:
        async with scope.read() as connection:
            page = await store.export_audit(connection, whose, after, PAGE, only)
        if page:
            yield page
        if len(page) < PAGE:
            return
        after = (page[-1].at, page[-1].id)
