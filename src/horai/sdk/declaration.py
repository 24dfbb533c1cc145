"""What the arguments of `@app.job` come to: the job's document, checked at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypedDict

from horai.core.definition import checked
from horai.core.durations import format_duration
from horai.core.errors import Invalid
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import Shape, Signature, result_shape_of, signature_of

Duration = float | str | timedelta
"""Seconds, text such as "10m", or a timedelta."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently a failing instance is tried again; what is not said is the default."""

    max: int = 5
    base: Duration | None = None
    cap: Duration | None = None
    jitter: Literal["additive", "full", "none"] | None = None


class Options(TypedDict, total=False):
    """What a job may say of itself. At most one of cron and every."""

    name: str
    cron: str
    every: Duration
    timezone: str
    dst: Mapping[str, str]
    payload: object
    queue: str
    priority: Literal["core", "high", "normal", "low"]
    retry: Retry
    timeout: Duration
    tags: Sequence[str]
    isolation: Literal["process"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A job as its code declares it. `payload` is JSON text; `result` is the shape of what the function returns."""

    name: str
    document: Mapping[str, Any]
    payload: str | None
    signature: Signature
    result: Shape[Any]
    isolation: Literal["process"] | None


def declaration_of(function: Callable[..., Any], options: Options) -> Declaration:
    """What a function and its options declare; `Invalid` names the job and every wrong field."""
    name = options.get("name") or function.__name__
    try:
        signature = signature_of(function)
        document = _document(name, options, signature)
        checked(document)
        payload = signature.shape.encode(options.get("payload"))
    except Invalid as error:
        raise Invalid(f"The job {name!r}: {error.detail}", error.hint, error.errors) from error
    except ValueError as error:
        raise Invalid(f"The job {name!r}: {error}.") from error
    return Declaration(name, document, payload, signature, result_shape_of(function), options.get("isolation"))


def _document(name: str, options: Options, signature: Signature) -> dict[str, Any]:
    document: dict[str, Any] = {"name": name, "target": {"type": "worker", "handler": name}}
    for field in ("cron", "timezone", "queue", "priority"):
        if (value := options.get(field)) is not None:
            document[field] = value
    for field in ("every", "timeout"):
        if (value := options.get(field)) is not None:
            document[field] = _duration(value)
    if dst := options.get("dst"):
        document["dst"] = dict(dst)
    if tags := options.get("tags"):
        document["tags"] = list(tags)
    if retry := options.get("retry"):
        document["retry"] = _retry(retry)
    if signature.shape.schema is not None:
        document["payloadSchema"] = dict(signature.shape.schema)
    return document


def _duration(value: Duration) -> str:
    return format_duration(seconds_of(value))


def _retry(retry: Retry) -> dict[str, Any]:
    document: dict[str, Any] = {"maxRetry": retry.max}
    if retry.base is not None:
        document["base"] = _duration(retry.base)
    if retry.cap is not None:
        document["cap"] = _duration(retry.cap)
    if retry.jitter is not None:
        document["jitter"] = retry.jitter
    return document
