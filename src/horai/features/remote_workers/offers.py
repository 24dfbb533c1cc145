"""The check of a `hello`: what the worker offers to run."""

import re

from horai.core.errors import Invalid
from horai.core.job import QUEUE
from horai.core.stored_text import clean_text
from horai.features.remote_workers.phrases import WorkerWords
from horai.features.remote_workers.rules import WorkOffer
from horai.wire.worker_messages import PROTOCOL, AttemptRef, Hello

HANDLER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}")
"""The names of functions. Those of Horai's own handlers, which begin with `horai:`, are not among them."""
MOST_HANDLERS = 1_000
MOST_QUEUES = 1_000
NAME_LIMIT = 128
_ID = re.compile(r"[0-9]{1,18}")


def offer_of(tenant_id: int, hello: Hello, most_credits: int) -> WorkOffer:
    """Return the offer of a worker. Raise `Invalid` for one that the server cannot serve."""
    if hello.protocol != PROTOCOL:
        raise Invalid(WorkerWords.OTHER_PROTOCOL(ours=PROTOCOL, theirs=hello.protocol))
    if not 0 < hello.credits <= most_credits:
        raise Invalid(WorkerWords.CREDITS_OUTSIDE(most=most_credits))
    names = [offered.name for offered in hello.handlers]
    if not names or len(names) > MOST_HANDLERS or len(hello.queues or ()) > MOST_QUEUES:
        raise Invalid(WorkerWords.NOT_AN_OFFER(error=f"1 to {MOST_HANDLERS} handlers, at most {MOST_QUEUES} queues"))
    for wrong in (name for name in names if not HANDLER.fullmatch(name)):
        raise Invalid(WorkerWords.NOT_AN_OFFER(error=f"{wrong[:NAME_LIMIT]!r} is not the name of a function"))
    for wrong in (queue for queue in hello.queues or () if not QUEUE.fullmatch(queue)):
        raise Invalid(WorkerWords.NOT_AN_OFFER(error=f"{wrong[:NAME_LIMIT]!r} is not the name of a queue"))
    caps = frozenset((offered.name, max(offered.concurrency, 0)) for offered in hello.handlers)
    return WorkOffer(tenant_id, caps, None if hello.queues is None else frozenset(hello.queues))


def name_of(hello: Hello) -> str:
    """Return the name of a worker, fit for logs."""
    return clean_text(hello.name, NAME_LIMIT) or "worker"


def is_instance(text: str) -> bool:
    """Return whether a text is the id of an instance."""
    return _ID.fullmatch(text) is not None


def refs_of(given: list[AttemptRef]) -> list[AttemptRef]:
    """Return the attempts whose ids are ids of instances."""
    return [ref for ref in given if is_instance(ref.instance)]
