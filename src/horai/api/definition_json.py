"""Definitions and their versions as public JSON."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Request

from horai.api.problems import encode_field_error
from horai.api.sentence_json import sentence_fields
from horai.core.definitions import changes_between
from horai.db.definition_versions import VersionRow
from horai.operations.definitions import AppliedDefinition, DefinitionKind
from horai.wire.definitions import AppliedOut, FieldChangeOut, VersionActor
from horai.wire.encode import Encoded


async def _kinds_of(request: Request) -> dict[str, DefinitionKind]:
    return request.app.state.kinds


KindsDep = Annotated[dict[str, DefinitionKind], Depends(_kinds_of)]
"""The kinds of definitions by name: those of jobs and queues, and those of features."""


def version_fields(row: VersionRow, older: VersionRow | None) -> dict[str, Any]:
    """Return the fields of a version that compare it with the one before it."""
    changes = [] if older is None else changes_between(json.loads(older.definition), json.loads(row.definition))
    return {
        "actor": VersionActor.encode(row),
        "fields": [change.field for change in changes],
    }


def encode_changes(older: VersionRow | None, row: VersionRow) -> list[Encoded]:
    """Return the changes of a version from the one before it; none for the oldest."""
    if older is None:
        return []
    changes = changes_between(json.loads(older.definition), json.loads(row.definition))
    return [FieldChangeOut.encode(change) for change in changes]


def older_of(rows: Sequence[VersionRow], version: int) -> VersionRow | None:
    """Return the newest version before this one, of versions in descending order."""
    return next((row for row in rows if row.version < version), None)


def encode_fate(fate: AppliedDefinition) -> Encoded:
    """Return the fate of a definition."""
    told: dict[str, Any] = {"errors": []}
    if fate.error is not None:
        told = {**sentence_fields("reason", fate.error.detail), **sentence_fields("hint", fate.error.hint)}
        told["errors"] = [encode_field_error(each) for each in fate.error.errors]
    changes = [FieldChangeOut.encode(change) for change in fate.changes]
    return AppliedOut.encode(fate, action=fate.action.value, changes=changes, **told)
