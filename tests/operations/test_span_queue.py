"""The queue of spans: it never blocks its caller, and counts the spans that it loses."""

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from horai.operations.span_queue import BATCH, SpanQueue

SOON = timedelta(seconds=10)
AT_ONCE = timedelta(milliseconds=50)


class Sender:
    """Takes batches, or holds the first one until it is told to go on."""

    def __init__(self, *, holds: bool = False, takes: bool = True) -> None:
        self.batches: list[list[Any]] = []
        self.is_asked = threading.Event()
        self.may_go_on = threading.Event()
        self.takes = takes
        if not holds:
            self.may_go_on.set()

    def __call__(self, batch: Sequence[Any]) -> bool:
        self.is_asked.set()
        assert self.may_go_on.wait(30)
        self.batches.append(list(batch))
        return self.takes


def test_spans_are_sent_in_batches_and_the_rest_at_the_close() -> None:
    sender = Sender()
    queue = SpanQueue(sender)
    for number in range(2 * BATCH + 1):
        queue.put(number)
    queue.close(SOON)

    assert [span for batch in sender.batches for span in batch] == list(range(2 * BATCH + 1))
    assert max(len(batch) for batch in sender.batches) <= BATCH
    assert (queue.exported, queue.dropped) == (2 * BATCH + 1, 0)


def test_a_full_queue_drops_spans_and_does_not_wait() -> None:
    sender = Sender(holds=True)
    queue = SpanQueue(sender, capacity=BATCH)
    for number in range(BATCH):
        queue.put(number)
    assert sender.is_asked.wait(10)  # the first batch is on its way, and the queue is empty
    for number in range(BATCH + 7):
        queue.put(number)
    assert queue.dropped == 7

    sender.may_go_on.set()
    queue.close(SOON)
    assert (queue.exported, queue.dropped) == (2 * BATCH, 7)


def test_a_batch_that_the_collector_refuses_is_counted_as_dropped() -> None:
    queue = SpanQueue(Sender(takes=False))
    queue.put(1)
    queue.put(2)
    queue.close(SOON)

    assert (queue.exported, queue.dropped) == (0, 2)


def test_an_error_of_the_exporter_does_not_end_the_thread() -> None:
    sent: list[Any] = []

    def send(batch: Sequence[Any]) -> bool:
        sent.extend(batch)
        if len(sent) == BATCH:
            raise ValueError("cannot be encoded")
        return True

    queue = SpanQueue(send)
    for number in range(BATCH + 1):
        queue.put(number)
    queue.close(SOON)

    assert (queue.exported, queue.dropped) == (1, BATCH)


def test_a_stop_does_not_wait_for_a_collector_that_hangs() -> None:
    sender = Sender(holds=True)
    queue = SpanQueue(sender)
    for number in range(BATCH):
        queue.put(number)
    assert sender.is_asked.wait(10)
    queue.put("left")
    begun = time.monotonic()
    queue.close(AT_ONCE)

    assert time.monotonic() - begun < 10
    assert queue.dropped == 1
    queue.put("late")
    assert queue.dropped == 2
    sender.may_go_on.set()
