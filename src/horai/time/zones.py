"""Time zones by their IANA name, with the rules of the package `tzdata`.

The files of the system are never used, because they differ between machines: nodes that share a database agree on each
instant, and `version` tells by which rules it was computed.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache
from io import BytesIO
from pkgutil import get_data
from typing import Protocol
from zoneinfo import ZoneInfo

import tzdata

from horai.text import Wrong

_NO_PLACES = frozenset({"Factory", "localtime"})
"""Names that mean something else on each machine, or nothing."""


class Rules(Protocol):
    """One edition of the time zones of the world."""

    @property
    def version(self) -> str:
        """Return the version, which differs from that of any other edition."""
        ...

    def names(self) -> frozenset[str]:
        """Return the names of all zones."""
        ...

    def read(self, name: str) -> bytes:
        """Return the TZif file of one of the names."""
        ...


class _Packaged:
    """The rules of the installed package."""

    version = tzdata.IANA_VERSION

    def names(self) -> frozenset[str]:
        return frozenset(_packaged("zones").decode().split())

    def read(self, name: str) -> bytes:
        return _packaged(f"zoneinfo/{name}")


def _packaged(path: str) -> bytes:
    found = get_data("tzdata", path)
    assert found is not None  # noqa: S101 — importers of installed packages read their files
    return found


_PACKAGED: Rules = _Packaged()
_rules: ContextVar[Rules] = ContextVar("horai zone rules", default=_PACKAGED)


@contextmanager
def use(rules: Rules) -> Generator[None]:
    """Use other rules in this task, and those it starts, until the end of the block: for tests of a rule change."""
    before = _rules.set(rules)
    try:
        yield
    finally:
        _rules.reset(before)


def version() -> str:
    """Return the edition of the rules, such as `2026f`."""
    return _rules.get().version


def zone(name: str) -> ZoneInfo:
    """Return the zone `name`, spelled as IANA spells it. Raise ValueError, with the nearest name, for any other text.

    Only listed names are looked up, so that no text can reach another file.
    """
    rules = _rules.get()
    if name not in _known(rules):
        raise ValueError(Wrong.UNKNOWN_ZONE(name=name[:64], suggestion=_suggestion(rules, name[:64])))
    return _loaded(rules, name)


@cache
def _known(rules: Rules) -> frozenset[str]:
    return rules.names() - _NO_PLACES


@cache
def _loaded(rules: Rules, name: str) -> ZoneInfo:
    """Return one object per name, because other modules cache results for it; at most about 600 of them."""
    return ZoneInfo.from_file(BytesIO(rules.read(name)), key=name)


def _suggestion(rules: Rules, name: str) -> str:
    """Return a hint with the known name nearest to `name`, regardless of case and of a missing region."""
    by_name = {known.casefold(): known for known in sorted(_known(rules))}
    by_city = {folded.rpartition("/")[2]: known for folded, known in by_name.items()}
    wanted = name.casefold().replace(" ", "_")
    for candidates in (by_name, by_city):
        if close := get_close_matches(wanted, candidates, n=1, cutoff=0.7):
            return Wrong.DID_YOU_MEAN(name=candidates[close[0]])
    return Wrong.WRITE_ZONE()
