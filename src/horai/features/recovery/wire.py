"""Recovery on the wire."""

from datetime import datetime
from typing import Literal

from horai.wire.fields import Id, Model, Text


class RecoverIn(Model):
    """`POST /api/v1/recover`: the incident after which the cluster recovers."""

    incident: Text


class RecoverOut(Model):
    """The result of a recovery: shards that had no live owner, events that sinks get again, and dead letters that run again."""

    status: Literal["RECOVERY_COMPLETED"]
    incident: Id
    resumed: int
    replayed: int
    dlq_moved: int
    started_at: datetime
    completed_at: datetime
