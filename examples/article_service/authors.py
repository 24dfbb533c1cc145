"""The routes for authors. A route changes the article first; then it tells Horai, now or as soon as Horai answers."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel

from .articles import Article, Status
from .desk import Desk, DeskDep

router = APIRouter()


class Draft(BaseModel):
    """A new article."""

    title: str
    text: str
    publish_at: AwareDatetime


class PublishTime(BaseModel):
    """Another publish time."""

    publish_at: AwareDatetime


class Held(BaseModel):
    """The state of the press: `held` is true while it stands still."""

    held: bool


@router.post("/articles", status_code=201)
async def write(desk: DeskDep, draft: Draft) -> dict[str, Any]:
    """A new article."""
    return shown(await desk.store.write(draft.title, draft.text, draft.publish_at))


@router.get("/articles/{article_id}")
async def read(desk: DeskDep, article_id: int) -> dict[str, Any]:
    """An article as it is now."""
    return shown(await desk.store.find(article_id))


@router.post("/articles/{article_id}/submit")
async def submit(desk: DeskDep, article_id: int) -> dict[str, Any]:
    """To the auditors."""
    return await told(desk, await desk.store.move(article_id, Status.AUDITING))


@router.post("/articles/{article_id}/withdraw")
async def withdraw(desk: DeskDep, article_id: int) -> dict[str, Any]:
    """Not to be published."""
    return await told(desk, await desk.store.move(article_id, Status.WITHDRAWN))


@router.put("/articles/{article_id}/publish-time")
async def move_publish_time(desk: DeskDep, article_id: int, wish: PublishTime) -> dict[str, Any]:
    """To be published at another time."""
    return await told(desk, await desk.store.move_publish_time(article_id, wish.publish_at))


@router.get("/articles/{article_id}/deliveries")
async def deliveries(desk: DeskDep, article_id: int) -> list[dict[str, Any]]:
    """The calls about an article, and what each of them did."""
    return [asdict(receipt) for receipt in await desk.store.receipts(article_id)]


@router.put("/press")
async def hold(desk: DeskDep, wish: Held) -> Held:
    """Stops the press, or lets it run again."""
    (desk.press.hold if wish.held else desk.press.release)()
    return wish


async def told(desk: Desk, article: Article) -> dict[str, Any]:
    """An article that was changed, after Horai was told; `scheduled` says whether it has heard."""
    is_told = await desk.messenger.tell(article)
    return shown(article) | {"scheduled": is_told}


def shown(article: Article) -> dict[str, Any]:
    """An article as it is answered."""
    return asdict(article) | {"publish_at": article.publish_at.isoformat()}
