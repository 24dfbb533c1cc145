"""The request of several attempts at once, to a target with `batch`, and the outcome of each of them in the answer.

The body is `{"items": […]}`. Each item has the fields of a single call and, in place of its headers, `fence`, `idempotencyKey`,
`unit` and `outcomeToken`. The answer is `{"items": […]}` too, in any order:

    an item with this instanceId        as the body of a 2xx; ACCEPTED in `result` means what 202 means
    no such item, or no items           failed retryable, ITEM_MISSING; after 202 accepted
    any status but 2xx                  each attempt fails as a single call would
    JSON that cannot be read            each attempt fails as ANSWER_UNREADABLE
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, cast

from horai.core.callbacks import (
    Answer,
    body_of,
    common_headers,
    object_in,
    outcome_of,
    outcome_said,
    retry_after_of,
    signed_headers,
    token_of,
    unreadable,
)
from horai.core.calls import Call, HttpTarget
from horai.core.outcome import Accepted, FailedRetryable, Outcome

PAYLOADS_LIMIT = 1024 * 1024
"""Bytes of the payloads of a batch; a larger payload goes alone."""
ITEM_MISSING = "ITEM_MISSING"


def batch_body(calls: Sequence[Call], now: datetime) -> bytes:
    """Return the JSON body of several attempts."""
    return b'{"items": [' + b", ".join(_item(call, now) for call in calls) + b"]}"


def _item(call: Call, now: datetime) -> bytes:
    own = {
        "fence": str(call.fence),
        "idempotencyKey": call.idempotency_key,
        "unit": call.unit,
        "outcomeToken": token_of(call, now),
    }
    if call.traceparent is not None:
        own["traceparent"] = call.traceparent
    return f"{json.dumps(own)[:-1]}, ".encode() + body_of(call)[1:]


def batch_headers(calls: Sequence[Call], body: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of several attempts of one job. The message id is that of no other request."""
    first = calls[0]
    theirs: Mapping[str, str] = first.target.headers if isinstance(first.target, HttpTarget) else {}
    message_id = f"batch:{first.idempotency_key}:{first.fence}:{len(calls)}"
    ours = {"Horai-Batch": str(len(calls)), **signed_headers(first.secrets, message_id, body, now)}
    return common_headers(theirs) | ours


def batch_outcomes(
    calls: Iterable[Call], answer: Answer, now: datetime, remaining: timedelta
) -> dict[int, Outcome | Accepted]:
    """Decide the outcome of each attempt, by instance."""
    if not 200 <= answer.status < 300 or unreadable(answer) is not None:
        failed = outcome_of(answer, now, remaining)
        return {call.instance_id: failed for call in calls}
    said = _by_instance(object_in(answer).get("items"))
    retry_after = retry_after_of(answer, now)
    return {
        call.instance_id: _outcome_of_item(call, said.get(str(call.instance_id)), answer.status, retry_after, remaining)
        for call in calls
    }


def _by_instance(items: object) -> dict[str, dict[str, Any]]:
    """Return the items by instance. The first item of an instance counts; anything that is no item is skipped."""
    said: dict[str, dict[str, Any]] = {}
    for item in cast("list[object]", items) if isinstance(items, list) else ():
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            said.setdefault(str(fields.get("instanceId")), fields)
    return said


def _outcome_of_item(
    call: Call, said: Mapping[str, Any] | None, status: int, retry_after: timedelta | None, remaining: timedelta
) -> Outcome | Accepted:
    is_of_this_attempt = said is not None and str(said.get("fence", call.fence)) == str(call.fence)
    if said is None or not is_of_this_attempt:
        if status == HTTPStatus.ACCEPTED:
            return Accepted(remaining)
        return FailedRetryable(ITEM_MISSING, "the answer to the batch has no item for this attempt", retry_after)
    if said.get("result") == "ACCEPTED":
        return Accepted(remaining)
    return outcome_said(said, said.get("output"), retry_after)
