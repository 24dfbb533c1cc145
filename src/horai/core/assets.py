"""Data assets: what the fields `produces` and `when` of a job or a workflow may say.

An asset is a name, such as `sales.daily` or `s3://lake/sales`. A success of a job that produces it updates it; a job that
waits for it starts when it was updated.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, cast

from horai.core.validation import Validation
from horai.text import Hint, Wrong, mismatch

PRODUCES: Final = "produces"
WHEN: Final = "when"
ASSET_NAME = re.compile(r"[^\W_][\w.:/@+=~\-]{0,255}")
MOST_ASSETS: Final = 20
"""Assets that one job produces, or waits for."""
METADATA_LIMIT: Final = 4_096
"""Bytes of the metadata of an update."""
BESIDE_WHEN: Final = ("at", "delay", "refresh")
"""Fields that decide by themselves when a job runs: it cannot wait for assets as well."""
GATHERING: Final = ("allow", "queue")
"""The values of `overlap` of a job that waits for assets: updates are never lost, they gather for the next instance."""


class AssetRole(IntEnum):
    """The role of a job towards an asset, as the database stores it."""

    PRODUCES = 0
    WAITS = 1


@dataclass(frozen=True, slots=True)
class AssetUses:
    """The assets of one job. `is_any`: it starts when any of those that it waits for was updated, not all of them."""

    produces: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    is_any: bool = False


NO_ASSETS = AssetUses()


def read_assets(document: Mapping[str, Any], faults: Validation) -> AssetUses:
    """Return the assets of a job's document; add a fault for each field that is wrong."""
    if document.get(PRODUCES) is None and document.get(WHEN) is None:
        return NO_ASSETS
    produces = checked_names(document.get(PRODUCES), PRODUCES, faults)
    waits, is_any = _waits(document.get(WHEN), faults)
    for field in (PRODUCES, WHEN):
        if document.get(field) is not None and document.get("encrypted"):
            faults.add(field, Wrong.ASSETS_ENCRYPTED(), Hint.ASSETS_OF_WORKFLOW())
    if document.get(WHEN) is not None:
        for field in BESIDE_WHEN:
            if document.get(field) is not None:
                faults.add(WHEN, Wrong.STANDS_BESIDE(other=field))
        if (document.get("overlap") or "allow") not in GATHERING:
            faults.add("overlap", Wrong.NOT_ONE_OF(value=document["overlap"], allowed=", ".join(GATHERING)))
    return AssetUses(produces, waits, is_any)


def assets_of(document: Mapping[str, Any]) -> AssetUses:
    """Return the assets of a stored document, which was checked."""
    return read_assets(document, Validation())


def checked_names(given: Any, field: str, faults: Validation) -> tuple[str, ...]:
    """Return the names of assets without repeats; add a fault for a list that is too long and for each wrong name."""
    if given is None:
        return ()
    names = cast("Sequence[object]", given) if isinstance(given, list | tuple) else [given]
    for name in names:
        if not isinstance(name, str) or not ASSET_NAME.fullmatch(name):
            faults.add(field, mismatch(str(name), ASSET_NAME), Hint.NAME_ASSET())
    if not 1 <= len(names) <= MOST_ASSETS:
        faults.add(field, Wrong.ASSET_COUNT(most=MOST_ASSETS))
    return tuple(dict.fromkeys(str(name) for name in names))


def _waits(given: Any, faults: Validation) -> tuple[tuple[str, ...], bool]:
    if not isinstance(given, Mapping):
        return checked_names(given, WHEN, faults), False
    lists = cast("Mapping[str, Any]", given)
    words = [word for word in ("all", "any") if lists.get(word) is not None]
    if len(words) != 1 or not {"all", "any"}.issuperset(lists):
        faults.add(WHEN, Wrong.WHEN_WORDS(), Hint.WRITE_WHEN())
        return (), False
    return checked_names(lists[words[0]], f"{WHEN}.{words[0]}", faults), words[0] == "any"
