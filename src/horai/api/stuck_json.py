"""Stuck runs, clogged queues and root causes as public JSON."""

from horai.api.sentence_json import sentence_fields
from horai.core.root_cause import RootCause
from horai.operations.full_queues import StuckCause
from horai.operations.stuck import BlockedRun, CloggedQueue
from horai.text import Hint
from horai.wire.encode import Encoded
from horai.wire.stuck import BlockedRunOut, CloggedQueueOut, ClogOut, RootCauseOut, StuckCauseOut

HOLDERS_SHOWN = 20


def encode_clog(queue: CloggedQueue) -> Encoded:
    """Return since when a queue is clogged, and by which runs."""
    return ClogOut.encode(queue, holders=queue.holders[:HOLDERS_SHOWN])


def encode_clogged_queue(queue: CloggedQueue) -> Encoded:
    """Return a clogged queue with its name."""
    return CloggedQueueOut.encode(queue, holders=queue.holders[:HOLDERS_SHOWN])


def encode_stuck_cause(found: StuckCause) -> Encoded:
    """Return a stuck run with what waits behind it."""
    return StuckCauseOut.encode(found.stuck, waiting=found.waiting, blocks=found.blocks)


def encode_cause(cause: RootCause) -> Encoded:
    """Return a root cause with the advice that fits it."""
    advice = (
        Hint.REPLAY_OR_RERUN(instance=cause.instance_id, node=cause.node)
        if cause.has_letter
        else Hint.RERUN_BLOCKED(node=cause.node)
    )
    return RootCauseOut.encode(cause, blocks=list(cause.blocks), **sentence_fields("advice", advice))


def encode_blocked_run(found: BlockedRun) -> Encoded:
    """Return a blocked run with its root causes."""
    causes = [encode_cause(cause) for cause in found.causes]
    return BlockedRunOut.encode(found.run, waiting=found.waiting, root_causes=causes)
