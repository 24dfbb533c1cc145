"""The stages of the outbox: the recorder, and the deliverer with its senders."""

from horai.core.addresses import AddressPolicy
from horai.core.shards import Role
from horai.core.wakes import AuditWake, EventsWake, LaneWake, OutcomeWake
from horai.engine.loop import Stage
from horai.features.outbox.brokers import broker_senders
from horai.features.outbox.deliverer import Deliverer
from horai.features.outbox.recorder import Recorder
from horai.features.outbox.sender import LogSender
from horai.features.outbox.store import SinkKind
from horai.features.outbox.webhook import WebhookSender
from horai.features.parts import StageParts
from horai.operations.keyring import keyring_of


def stages(parts: StageParts) -> list[Stage]:
    """Build the stages in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    lease, board = parts.lease, parts.controls
    senders = {
        SinkKind.WEBHOOK: WebhookSender(AddressPolicy(parts.settings.callback_allow)),
        SinkKind.LOG: LogSender(),
        **broker_senders(parts.settings.brokers),
    }
    deliverer = Deliverer(parts.line("sinks"), lease, board, keyring_of(parts.settings), senders)
    recorder = Recorder(parts.line("outbox"), lease, board, parts.now, deliverer.wake)
    deliverer.on_event = recorder.wake
    for wake in (recorder.wake, deliverer.wake):
        lease.on_change.append(wake)
        board.on_change.append(wake)
        parts.wakeups.subscribe(EventsWake, lambda _, wake=wake: wake())
    parts.on_news.append(recorder.wake)
    parts.on_events.append(recorder.wake)
    for kind in (OutcomeWake, LaneWake, AuditWake):  # most changes announce themselves in one of these ways
        parts.wakeups.subscribe(kind, lambda _: recorder.wake())
    return [recorder, deliverer]
