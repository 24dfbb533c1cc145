"""The messages of the worker protocol, version 1: JSON texts over a WebSocket, one message in each.

A receiver ignores fields that it does not know. docs/reference/worker-protocol.md describes the protocol.
"""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

PROTOCOL = 1
PATH = "/api/v1/worker"


class Message(Struct, rename="camel", omit_defaults=True, tag_field="type", tag=str.lower):
    """A message. The field `type` has its name in lower case."""


class Part(Struct, rename="camel", omit_defaults=True):
    """A part of a message."""


class HandlerOffer(Part):
    """A function that the worker runs. It runs at most `concurrency` calls of it at once; 0 sets no limit of its own."""

    name: str
    concurrency: int = 0


class AttemptRef(Part):
    """An attempt: the id of its instance, and its fence."""

    instance: str
    fence: int


class ResumeRequest(Part):
    """The session that a worker goes on with after a lost connection, and the token that it was given."""

    session: str
    token: str


class DeclaredPart(Part):
    """A job as code declares it: its document, and its payload."""

    document: Raw
    payload: Raw | UnsetType = UNSET


class ApplicationPart(Part):
    """The jobs and the queues that an application declares, and its former names. A queue is its document."""

    name: str
    jobs: list[DeclaredPart]
    formerly: list[str] = []
    queues: list[Raw] = []


class Hello(Message):
    """The first message of a worker. `holding` are the attempts that it still runs or has not had an answer for.

    `declare` is for the first connection of a process: a server that the key allows it updates the queues and jobs to match the code.
    """

    protocol: int
    name: str
    handlers: list[HandlerOffer]
    credits: int
    queues: list[str] | None = None
    holding: list[AttemptRef] = []
    declare: ApplicationPart | None = None
    resume: ResumeRequest | None = None


class Credits(Message):
    """The number of calls that the worker runs at once from now on. With 0 it gets no more work."""

    total: int


class Report(Part):
    """The outcome of an attempt."""

    instance: str
    fence: int
    result: Literal["succeeded", "failed", "unrecoverable", "later", "released"]
    output: Raw | UnsetType = UNSET
    code: str = ""
    message: str = ""
    tags: list[str] = []
    delay: float = 0.0
    """Seconds until the instance runs again; for `later`, and for `failed` as the shortest pause."""
    traceback: str = ""


class Reports(Message):
    """The outcomes of attempts. Each of them gets an answer."""

    reports: list[Report]


class ProgressPart(Part):
    """The progress of an attempt from 0 to 1, a line of its log, or both."""

    instance: str
    fence: int
    progress: float | None = None
    message: str | None = None


class Progress(Message):
    """Progress and log lines. They get no answer."""

    notes: list[ProgressPart]


class Heartbeat(Message):
    """A sign of life. The server answers one of the worker with one of its own."""


class Bye(Message):
    """The last message of a worker that stops."""


WorkerMessage = Hello | Credits | Reports | Progress | Heartbeat | Bye
"""The messages that a worker sends."""


class ProtocolLimits(Part):
    """The limits of the server."""

    message_bytes: int
    reports: int
    credits: int


class Welcome(Message):
    """The answer to `hello`. `resumed` is false if the session is new.

    `unknown_handlers` are functions for which the tenant has no job. The worker is lost if it is silent for
    `lease_seconds`; it sends a heartbeat every `heartbeat_seconds`.
    """

    protocol: int
    session: str
    token: str
    server: str
    tenant: str
    lease_seconds: float
    heartbeat_seconds: float
    limits: ProtocolLimits
    resumed: bool = False
    declared: bool = False
    unknown_handlers: list[str] = []


class LeasedAttempt(Part):
    """An attempt to make. The worker reports its outcome with `instance` and `fence`.

    `alone`: the instance was lost with its workers before. A worker that can runs it in a process of its own.
    """

    instance: str
    fence: int
    attempt: int
    handler: str
    job: str
    job_id: int
    queue: str
    fire_time: datetime
    execute_time: datetime
    born_for: datetime
    slot: int
    idempotency_key: str
    unit: str
    key: str | None = None
    payload: Raw | UnsetType = UNSET
    timeout_seconds: float | None = None
    retry_count: int = 0
    encrypted: bool = False
    traceparent: str | None = None
    alone: bool = False
    interval_start: datetime | None = None


class Leases(Message):
    """Attempts to make, never more than the worker has credits."""

    leases: list[LeasedAttempt]


class Answer(Part):
    """The result of a report: `settled`, or `stale` if the attempt had ended before and the report changed nothing."""

    instance: str
    fence: int
    result: Literal["settled", "stale", "refused"]
    detail: str = ""


class Answers(Message):
    """The answers to reports. The worker may forget a report that has an answer."""

    answers: list[Answer]


class Cancel(Message):
    """Attempts whose outcomes no longer count: cancelled, replaced, timed out, or lost. The worker still reports them."""

    attempts: list[AttemptRef]


class Drain(Message):
    """The server stops: it sends no more work, and reads reports for `grace_seconds`."""

    grace_seconds: float


class WorkerError(Message, tag="error"):
    """An error. If `is_fatal`, the server closes the connection after it."""

    code: str
    detail: str
    hint: str = ""
    is_fatal: bool = False


ServerMessage = Welcome | Leases | Answers | Cancel | Drain | WorkerError | Heartbeat
"""The messages that a server sends."""

encode = msgspec.json.Encoder().encode
decode_worker = msgspec.json.Decoder(WorkerMessage).decode
decode_server = msgspec.json.Decoder(ServerMessage).decode
