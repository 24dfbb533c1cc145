"""The chain of seals: bytes, hashes and the comparison of a seal with its rows. Pure.

A seal covers the rows of an interval of transaction ids, in the order (xid, id). Each row has an entry of 52 bytes:

    id 8 | xid 8 | month 4 | digest 32        integers big-endian; month is YYYYMM of `at` in UTC

The digest is SHA-256 of the row's canonical text: a JSON array of all columns but id and xid, as text or null, `at` in
microseconds since 1970, JSON columns exactly as stored, without white space, in UTF-8. The hash of a seal is SHA-256
of the previous hash, its number, its interval, its time and its entries. Both id and xid are outside the digest, so
that rows whose contents were exchanged can be told from rows that were edited.
"""

import hashlib
import json
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

_ENTRY = struct.Struct(">QQI32s")
_HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{64})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
GENESIS = bytes(32)
"""The previous hash of the first seal."""
NO_MONTH = 0


class FaultKind(StrEnum):
    """The kind of a difference between the chain and the rows."""

    EDITED = "edited"
    DELETED = "deleted"
    INSERTED = "inserted"
    REORDERED = "reordered"
    SEAL_ALTERED = "sealAltered"
    """The hash of a seal does not follow from its content, or its content does not match its interval."""
    CHAIN_BROKEN = "chainBroken"
    """A seal does not continue the one before it."""
    SIGNATURE_WRONG = "signatureWrong"
    UNSIGNED = "unsigned"
    """This node has a key, and no valid signature covers the seal."""
    CUT = "cut"
    """The chain ends before the given head, or its beginning is missing."""
    HEAD_DIFFERS = "headDiffers"
    """The seal with the number of the given head has another hash: the chain was rewritten."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """One difference: the seal in which it is, and the id of the row if it concerns a single row."""

    kind: FaultKind
    seal: int
    row: int | None = None


@dataclass(frozen=True, slots=True)
class SealedRow:
    """A row as the chain sees it: its position, its month and the digest of its contents."""

    id: int
    xid: int
    month: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Seal:
    """A seal; `hash` covers all other fields. The interval includes both ends."""

    n: int
    from_xid: int
    to_xid: int
    sealed_at: datetime
    entries: bytes
    previous: bytes
    hash: bytes

    @property
    def rows(self) -> int:
        """Return the number of its rows."""
        return len(self.entries) // _ENTRY.size

    @property
    def head(self) -> str:
        """Return the text under which the seal is published."""
        return f"{self.n}:{self.hash.hex()}"


def digest_of(columns: Sequence[str | None]) -> bytes:
    """Return the digest of a row from its columns in canonical form."""
    return hashlib.sha256(json.dumps(columns, ensure_ascii=False, separators=(",", ":")).encode()).digest()


def micros(at: datetime) -> str:
    """Return the canonical form of a time: microseconds since 1970."""
    return str((at - _EPOCH) // _MICROSECOND)


def month_of(at: datetime) -> int:
    """Return the month of a time in UTC, as YYYYMM."""
    utc = at.astimezone(UTC)
    return utc.year * 100 + utc.month


def make_seal(last: Seal | None, to_xid: int, rows: Sequence[SealedRow], sealed_at: datetime) -> Seal:
    """Return the seal that follows `last` and covers all rows up to `to_xid`."""
    n, previous = (1, GENESIS) if last is None else (last.n + 1, last.hash)
    from_xid = 0 if last is None else last.to_xid + 1
    entries = b"".join(_ENTRY.pack(row.id, row.xid, row.month, row.digest) for row in rows)
    return Seal(
        n, from_xid, to_xid, sealed_at, entries, previous, hash_of(n, from_xid, to_xid, sealed_at, previous, entries)
    )


def hash_of(n: int, from_xid: int, to_xid: int, sealed_at: datetime, previous: bytes, entries: bytes) -> bytes:
    """Return the hash of a seal."""
    header = f"{n}:{from_xid}:{to_xid}:{micros(sealed_at)}:"
    return hashlib.sha256(previous + header.encode() + entries).digest()


def entries_of(seal: Seal) -> Iterator[SealedRow]:
    """Yield the rows that a seal covers, as they were when it was made. Bytes that are not a whole entry are ignored."""
    whole = len(seal.entries) - len(seal.entries) % _ENTRY.size
    for id_, xid, month, digest in _ENTRY.iter_unpack(seal.entries[:whole]):
        yield SealedRow(id_, xid, month, digest)


def parse_head(text: str) -> tuple[int, bytes] | None:
    """Return the number and the hash of a published head; None for any other text."""
    match = _HEAD.fullmatch(text)
    return None if match is None else (int(match[1]), bytes.fromhex(match[2]))


def faults_of_link(last: Seal | None, seal: Seal) -> list[ChainFault]:
    """Return the faults of a seal itself: its hash, and its connection to the seal before it if there is one."""
    found = list[ChainFault]()
    own = hash_of(seal.n, seal.from_xid, seal.to_xid, seal.sealed_at, seal.previous, seal.entries)
    if own != seal.hash or len(seal.entries) % _ENTRY.size:
        found.append(ChainFault(FaultKind.SEAL_ALTERED, seal.n))
    follows = last is None or (last.n + 1, last.to_xid + 1, last.hash) == (seal.n, seal.from_xid, seal.previous)
    is_first = seal.n == 1
    if not follows or (is_first and (seal.from_xid, seal.previous) != (0, GENESIS)):
        found.append(ChainFault(FaultKind.CHAIN_BROKEN, seal.n))
    return found


def faults_of_rows(seal: Seal, rows: Sequence[SealedRow], kept_from: int = NO_MONTH) -> list[ChainFault]:
    """Compare a seal with the rows that are now in its interval. Rows of months before `kept_from` may be absent."""
    sealed = {entry.id: entry for entry in entries_of(seal)}
    present = Counter(row.id for row in rows)
    known = Counter(entry.digest for entry in sealed.values())
    found = list[ChainFault]()
    for row in rows:
        entry = sealed.get(row.id)
        if entry is None or present[row.id] > 1:
            found.append(ChainFault(FaultKind.INSERTED, seal.n, row.id))
        elif fault := _fault_of_row(entry, row, known):
            found.append(ChainFault(fault, seal.n, row.id))
    gone = [entry for entry in sealed.values() if entry.id not in present and entry.month >= kept_from]
    return found + [ChainFault(FaultKind.DELETED, seal.n, entry.id) for entry in gone]


def _fault_of_row(entry: SealedRow, row: SealedRow, known: Mapping[bytes, int]) -> FaultKind | None:
    if row.digest != entry.digest:
        return FaultKind.REORDERED if row.digest in known else FaultKind.EDITED
    return FaultKind.REORDERED if row.xid != entry.xid else None
