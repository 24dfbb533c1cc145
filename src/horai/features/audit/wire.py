"""Shapes of the audit log."""

from datetime import date, datetime
from typing import Annotated, Literal

from horai.wire.encode import From
from horai.wire.fields import Id, JsonObject, Model

ActorKindName = Literal["key", "user", "sdk", "sql", "source", "system", "keyless"]
FaultName = Literal[
    "edited",
    "deleted",
    "inserted",
    "reordered",
    "sealAltered",
    "chainBroken",
    "signatureWrong",
    "unsigned",
    "cut",
    "headDiffers",
]


class AuditActor(Model):
    """The actor of a write. `role` is the role with which it was allowed."""

    kind: Annotated[str, From("actor_kind")]
    id: Annotated[str, From("actor_id")]
    name: Annotated[str, From("actor_name")]
    role: Annotated[str, From("actor_role")]


class AuditObject(Model):
    """The object of a write, as it was named then."""

    kind: Annotated[str, From("object_kind")]
    id: Annotated[str, From("object_id")]
    name: Annotated[str, From("object_name")]


class AuditOut(Model):
    """A write: by whom, on which object, and the fields that it changed, with secret values as `***`.

    A batch is one row with `counts`. `seal` is the number of the seal that covers the row; null until it is sealed.
    """

    id: Id
    at: datetime
    actor: AuditActor
    address: str
    request_id: str
    verb: str
    object: AuditObject
    before: JsonObject | None
    after: JsonObject | None
    counts: JsonObject | None
    seal: int | None


class AuditList(Model):
    """A page of the audit log, newest first."""

    items: list[AuditOut]
    next_cursor: str | None


class AuditFaultOut(Model):
    """A difference between the chain and the rows: the seal in which it is, and the row if it concerns a single row.

    `cut`: the chain ends before the given head, or its beginning is missing. `headDiffers`: the chain was rewritten.
    `unsigned`: no signature of this node's key covers the seals from this one on.
    """

    kind: FaultName
    seal: int
    row: Id | None


class ChainOut(Model):
    """The result of a verification, for the part of the chain that was read.

    `nextSeal` is the seal to continue with (`from`) if the time was used up; null if the chain was read to its end.
    `dropped` rows belong to months before `keptFrom`, which retention has dropped. `signedTo` is the last seal whose
    signature this node's key verifies; null without a key. At most 100 faults are returned.
    """

    intact: Annotated[bool, From("is_intact")]
    head: str | None
    seals: int
    rows: int
    dropped: int
    unsealed: int | None
    signed_to: int | None
    kept_from: date | None
    next_seal: int | None
    faults: list[AuditFaultOut]
