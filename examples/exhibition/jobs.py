"""The functions that run at their time. `horai worker examples.exhibition.jobs:app` runs them."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from horai import Horai, Instance, Retry

from .tables import Exhibition, Letter, Reservation, Status, sessions

app = Horai("exhibition")


@dataclass(frozen=True)
class Notice:
    """A notice to a visitor with a reservation that enrolment has started."""

    exhibition_id: int
    visitor: str


@app.job(queue="exhibitions", priority="high", timeout="30s")
async def start_enrolling(instance: Instance[int]) -> int:
    """Move an exhibition from APPROVED to ENROLLING and plan a letter for each reservation: all of it or nothing."""
    async with sessions.begin() as session:
        exhibition = await session.get_one(Exhibition, instance.payload, with_for_update=True)
        if exhibition.status != Status.APPROVED:  # withdrawn meanwhile, or this is a second try
            instance.log(f"exhibition {exhibition.id} is {exhibition.status}: nothing to do")
            return 0
        exhibition.status = Status.ENROLLING
        visitors = await session.scalars(select(Reservation.visitor).filter_by(exhibition_id=exhibition.id))
        notices = [Notice(exhibition.id, visitor) for visitor in visitors]
        await notify.enqueue_many(notices, conn=session)
        return len(notices)


@app.job(queue="letters", retry=Retry(max=8), timeout="10s")
async def notify(notice: Notice) -> None:
    """One letter, however often it is tried."""
    async with sessions.begin() as session:
        letter = insert(Letter).values(exhibition_id=notice.exhibition_id, visitor=notice.visitor)
        await session.execute(letter.on_conflict_do_nothing())
