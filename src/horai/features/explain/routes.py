"""Routes that explain slots and instances."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.instance_id import instance_id_of
from horai.api.route import RoleRoute, needs
from horai.api.sentence_json import sentence_fields
from horai.core.roles import AccessRole
from horai.features.explain.service import ExplainResult, explain_instance, explain_slot
from horai.features.explain.wire import ExplanationOut, HoldOut, OccurrenceOut, WhyOut
from horai.wire.fields import Model, Text

router = APIRouter(prefix="/api/v1", route_class=RoleRoute)


class ExplainQuery(Model):
    """The question: an instant, or a local time in the job's zone if there is no offset."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    at: Annotated[Text, Field(max_length=100, examples=["2026-03-29T02:30", "2026-03-29T01:00:00Z"])]


@router.get("/jobs/{job}/explain", tags=["jobs"], responses={200: {"model": ExplanationOut}})
@needs(AccessRole.VIEWER)
async def explain(scope: ScopeDep, job: str, query: Annotated[ExplainQuery, Query()]) -> Response:
    """Say why a slot fired, is waiting, was held or skipped, or why there is none."""
    told = await explain_slot(scope, job, query.at)
    also = None if told.also is None else OccurrenceOut.encode(told.also.explanation, **_beside(told.also))
    return answer(ExplanationOut.encode(told.explanation, **_beside(told), also=also))


@router.get("/instances/{instance}/why", tags=["instances"], responses={200: {"model": WhyOut}})
@needs(AccessRole.VIEWER)
async def get_why(scope: ScopeDep, instance: str) -> Response:
    """Say why an instance does not run, with everything in its way; if it runs or has ended, say how it went."""
    told = await explain_instance(scope, instance_id_of(instance))
    holds = [HoldOut.encode(hold, **sentence_fields("detail", hold.words.sentence())) for hold in told.holds]
    return answer(WhyOut.encode(told, **sentence_fields("why", told.why), holds=holds))


def _beside(explained: ExplainResult) -> dict[str, Any]:
    """Return the fields that the explanation itself does not have."""
    return {**sentence_fields("why", explained.explanation.why), "instance": explained.instance}
