"""Wire models of dead letters."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Instant, Key, Model, Note, RateText, Text
from horai.wire.instances import InstanceOut

ReplayStatusName = Literal["NEW", "REPLAYED", "SUPERSEDED", "DISCARDED"]
Word = Annotated[Text, Field(max_length=200)]


class LettersIn(Model):
    """The letters of a request: those that match all given fields, oldest first, at most `limit`."""

    job: Text | None = None
    tag: Word | None = None
    error_code: Word | None = None
    fingerprint: Word | None = None
    instance: Id | None = None
    ids: Annotated[list[Id], Field(min_length=1, max_length=500)] | None = None
    """The letters themselves. With other fields, those of them that match all fields."""
    from_: Annotated[Instant | None, Field(alias="from")] = None
    to: Instant | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1_000
    dry_run: bool = False


class ReplayIn(LettersIn):
    """`POST /api/v1/dlq/replay`: the letters that match all given fields, oldest first, at most `limit`, at `rate`."""

    rate: RateText | None = None


class DiscardManyIn(LettersIn):
    """`POST /api/v1/dlq/discard`: the letters that match all given fields, oldest first, at most `limit`.

    At least one field is required. Only a dry run needs no reason.
    """

    reason: Note | None = None


class DiscardAnswer(Model):
    """The result of a discard by filter. `more`: there are further letters that match."""

    matched: int
    discarded: int
    more: bool
    dry_run: bool


class LetterOut(Model):
    """A dead letter: the error of an instance that died, and its status since.

    `fingerprint` is the same for the same fault of a job. `payloadRef` says where the payload is kept: with the
    instance. `key` is null if the instance has none or is no longer kept. `replayedAs` is the instance that a replay
    created, `reason` says why the letter was discarded.
    """

    id: Id
    job: str
    job_id: Id
    instance_id: Id
    key: str | None
    error_code: str
    error_msg: str | None
    tags: list[str]
    fingerprint: str | None
    payload_ref: str
    replay_status: ReplayStatusName
    replayed_as: Id | None
    reason: str | None
    created_at: datetime
    changed_at: datetime | None
    timezone: Annotated[str | None, Field(description="The zone of the job's cron schedule; null without one.")]


class LetterDetail(LetterOut):
    """A dead letter with the instance that died, as long as that is kept."""

    instance: InstanceOut | None


class LetterList(Model):
    """A page of dead letters, newest first."""

    items: list[LetterOut]
    next_cursor: str | None


class FaultOut(Model):
    """The dead letters of one fault: their number, the times of the first and the last, and the last letter.

    `lastDay` has the number of letters in each of the last 24 hours, the most recent hour last.
    """

    fingerprint: str | None
    job: str
    job_id: Id
    error_code: str
    error_msg: str | None
    letters: int
    first_at: datetime
    last_at: datetime
    last_letter: Annotated[Id, From("last_id")]
    last_day: list[int]


class FaultList(Model):
    """The most frequent faults. `more`: there are older letters that were not counted."""

    items: list[FaultOut]
    letters: int
    more: bool


class ReplayAnswer(Model):
    """The result of a replay by filter.

    `superseded` letters were not run: their keys are live, or have succeeded since. `held` letters are still NEW:
    another transaction had locked their keys. `more`: there are further letters that match.
    """

    matched: int
    replayed: int
    superseded: int
    held: int
    more: bool
    dry_run: bool


class LetterAnswer(Model):
    """A letter and the instance of its replay; `replayed` is false if this request did not replay it."""

    replayed: bool
    letter: LetterOut
    instance: InstanceOut | None


class LetterIn(Model):
    """A dead letter of another cluster. `origin` names it there: a letter with a known origin is not imported again."""

    origin: Annotated[Word, Field(min_length=1)]
    job: Text
    key: Key | None = None
    fire_time: Instant
    execute_time: Instant | None = None
    died_at: Instant
    version: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    fence: Annotated[int, Field(ge=1, lt=2**31)] = 1
    payload: Any = None
    error_code: Annotated[Word, Field(min_length=1)]
    error_msg: Annotated[Text, Field(max_length=10_000)] | None = None
    fingerprint: Word | None = None
    tags: Annotated[list[Word], Field(max_length=50)] = Field(default_factory=list)


class ImportLettersIn(Model):
    """`POST /api/v1/dlq/import`: dead letters of another cluster, at most 500 and 32 MB."""

    letters: Annotated[list[LetterIn], Field(min_length=1, max_length=500)]
    dry_run: bool = False


class LeftOutLetterOut(Model):
    """A letter that cannot be imported: its job does not exist here, or is encrypted."""

    origin: str
    reason: Literal["NO_JOB", "ENCRYPTED_JOB"]


class ImportLettersOut(Model):
    """The result of an import of dead letters. `known` ones were imported before."""

    imported: int
    known: int
    skipped: list[LeftOutLetterOut]
    dry_run: bool
