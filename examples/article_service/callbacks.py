"""The routes for Horai. Horai decides when to try; this service decides whether a call takes effect.

Horai may call each of them twice, late, or for something that is no longer wanted. So each route checks first whether
the article still waits for it, and then moves it by a guarded change that happens once. The answer is the outcome; 2xx
means "done with it", whether it had an effect or not.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from .articles import IllegalMove, Status, is_fit_to_print
from .desk import Desk, DeskDep
from .signatures import delivery_of, verify
from .store import Delivery

router = APIRouter(prefix="/horai")
NONE = "NONE"
Answer = dict[str, dict[str, str]]


async def received(request: Request, desk: DeskDep) -> Delivery:
    """A call that is Horai's, and kept as such before anything is done."""
    body = await request.body()
    verify(desk.secret, request.headers, body)
    delivery = delivery_of(request.headers, body)
    await desk.store.arrived(delivery)
    return delivery


Received = Annotated[Delivery, Depends(received)]


@router.post("/audit")
async def audit(desk: DeskDep, delivery: Received) -> Answer:
    """AUDITING → AUDIT_SUCCESS or AUDIT_FAILED: the auditors' no is an answer, not a failure."""
    article = await desk.store.find(delivery.article_id)
    if article.status is not Status.AUDITING:  # still pending? A second call stops here
        return await answered(desk, delivery, NONE)
    verdict = Status.AUDIT_SUCCESS if is_fit_to_print(article) else Status.AUDIT_FAILED
    try:
        article = await desk.store.move(article.id, verdict)
    except IllegalMove:  # another call was first
        return await answered(desk, delivery, NONE)
    await desk.messenger.tell(article)
    return await answered(desk, delivery, verdict)


@router.post("/publish")
async def publish(desk: DeskDep, delivery: Received) -> Answer:
    """AUDIT_SUCCESS → PUBLISHED, if this is still what the author wants."""
    article = await desk.store.find(delivery.article_id)
    if article.status is not Status.AUDIT_SUCCESS:
        return await answered(desk, delivery, NONE)
    await desk.press.print()
    is_published = await desk.store.publish(delivery)
    return await answered(desk, delivery, Status.PUBLISHED if is_published else NONE)


async def answered(desk: Desk, delivery: Delivery, effect: str) -> Answer:
    """Keeps what a call did, and says so; Horai shows it as the instance's result."""
    await desk.store.ended(delivery, effect)
    article = await desk.store.find(delivery.article_id)
    return {"output": {"effect": effect, "status": article.status}}
