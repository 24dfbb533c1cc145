"""Versions of definitions, and definitions in files, on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import JsonObject, Model
from horai.wire.health import FieldProblem
from horai.wire.sentences import Sentence

KindName = Literal["job", "workflow", "queue", "reconciler"]
ActionName = Literal["created", "changed", "unchanged", "refused"]


class FieldChangeOut(Model):
    """A field with its old and its new value; null where it is absent. Secret values are `***`."""

    field: str
    before: Any
    after: Any


class VersionActor(Model):
    """The actor of a change; all texts are empty for the definition before the first recorded change."""

    kind: Annotated[str, From("actor_kind")]
    id: Annotated[str, From("actor_id")]
    name: Annotated[str, From("actor_name")]


class VersionOut(Model):
    """A version of a definition: when and by whom it was written, and the fields that it changed.

    `version` is that of the object (`ETag`) after the change. `via`: `console`, `cli`, `api`, or `code` for a start of an application.
    `fields` compares with the version before it; they are empty for the oldest. A pause is no change of a definition.
    """

    version: int
    at: datetime
    actor: VersionActor
    via: str
    fields: list[str]


class VersionList(Model):
    """The kept versions of an object, newest first: 50 at most. `current` is the version that the object has now."""

    items: list[VersionOut]
    current: int
    declared_by: str | None
    """The application whose code declares the object: its next start replaces what is restored."""


class VersionDetail(VersionOut):
    """One version with its definition, and its changes from the version before it.

    Header values, query values and passwords are `***`. The payloads of encrypted jobs are not kept.
    """

    definition: JsonObject
    changes: list[FieldChangeOut]


class RestoreIn(Model):
    """`POST …/versions/{version}/restore`. With `dryRun`, nothing is changed: the answer says what would be."""

    dry_run: bool = False


class AppliedOut(Model):
    """The fate of a definition. `changes`: old and new values; `reason`, `hint` and `errors`: why it is refused.

    `declaredBy`: the application whose code declares the object. Its next start replaces the change.
    """

    kind: str
    name: str
    action: ActionName
    changes: list[FieldChangeOut]
    version: int | None
    declared_by: str | None
    reason: str | None = None
    reason_said: Sentence | None = None
    hint: str | None = None
    hint_said: Sentence | None = None
    errors: list[FieldProblem]


class ApplyIn(Model):
    """`POST /api/v1/definitions/apply`: definitions, each with its `kind` and the fields to create such an object.

    The stored definition becomes the given one: a field that is left out gets its default. A pause and its note stay. A secret given
    as `***` stays if the address does. Objects that are not named stay.
    """

    definitions: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=200)]
    dry_run: bool = False


class ApplyAnswer(Model):
    """The fates of the definitions, in the order of the request."""

    dry_run: bool
    items: list[AppliedOut]


class DefinitionOut(Model):
    """A definition as a file has it, without its `kind`. Secret values are `***`."""

    kind: KindName
    name: str
    version: int
    updated_at: datetime
    declared_by: str | None
    definition: Annotated[JsonObject, From("text")]


class DefinitionList(Model):
    """A page of definitions of one kind."""

    items: list[DefinitionOut]
    next_cursor: str | None
