"""Why a slot fired, waits, was held or skipped."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from horai.accept.explanations import Explained, explain_slot
from horai.api.context import ScopeDep
from horai.api.present import answer, instance_json
from horai.api.said import said
from horai.core.explain import Skip
from horai.wire.explain import ExplanationOut
from horai.wire.fields import Model, Text

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])


class ExplainQuery(Model):
    """What is asked: an instant, or without an offset a time by the clock of the job's zone."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    at: Annotated[Text, Field(max_length=100, examples=["2026-03-29T02:30", "2026-03-29T01:00:00Z"])]


@router.get("/{job}/explain", responses={200: {"model": ExplanationOut}})
async def explain(scope: ScopeDep, job: str, query: Annotated[ExplainQuery, Query()]) -> Response:
    """Say why a slot fired, is waiting, was held or skipped, or why there is none."""
    told = await explain_slot(scope, job, query.at)
    return answer({**_told(told), "also": None if told.also is None else _told(told.also)})


def _told(explained: Explained) -> dict[str, Any]:
    told = explained.explanation
    return {
        "at": told.at,
        "local": told.local,
        "verdict": told.verdict.value,
        **said("why", told.why),
        "instance": None if explained.instance is None else instance_json(explained.instance),
        "skip": None if told.skip is None else _skip_json(told.skip),
        "previous": told.previous,
        "next": told.next,
    }


def _skip_json(skip: Skip) -> dict[str, Any]:
    return {"from": skip.from_time, "to": skip.to_time, "slots": skip.slots, "reason": skip.reason}
