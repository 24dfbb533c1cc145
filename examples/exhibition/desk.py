"""The actions at the desk. A decision and the instances planned for it are one transaction: both, or neither.

The desk wakes no worker by hand. The commit tells the workers what is due soon; later instances they find by their
time. An approval of twenty exhibitions for next week wakes no worker at all.
"""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from .jobs import start_enrolling
from .tables import Exhibition, Reservation, Status


class Refused(Exception):
    """The exhibition is not where this could be done."""


async def submit(session: AsyncSession, title: str, enrolment_at: datetime, visitors: int = 0) -> int:
    """A new exhibition, and visitors who want to be told; its id."""
    exhibition = Exhibition(title=title, enrolment_at=enrolment_at, status=Status.SUBMITTED)
    session.add(exhibition)
    await session.flush()
    names = [f"visitor {number}" for number in range(1, visitors + 1)]
    session.add_all(Reservation(exhibition_id=exhibition.id, visitor=name) for name in names)
    return exhibition.id


async def approve(session: AsyncSession, exhibition_id: int) -> str:
    """SUBMITTED → APPROVED; enrolment will start at its time."""
    exhibition = await _locked(session, exhibition_id, Status.SUBMITTED)
    exhibition.status = Status.APPROVED
    return await _plan(session, exhibition)


async def move(session: AsyncSession, exhibition_id: int, enrolment_at: datetime) -> str:
    """Enrolment starts at another time."""
    exhibition = await _locked(session, exhibition_id, Status.APPROVED)
    exhibition.enrolment_at = enrolment_at
    return await _plan(session, exhibition)


async def withdraw(session: AsyncSession, exhibition_id: int) -> bool:
    """APPROVED → WITHDRAWN; whether there was a start to cancel."""
    exhibition = await _locked(session, exhibition_id, Status.APPROVED)
    exhibition.status = Status.WITHDRAWN
    return await start_enrolling.cancel(_key(exhibition_id), conn=session)


async def _locked(session: AsyncSession, exhibition_id: int, status: Status) -> Exhibition:
    exhibition = await session.get_one(Exhibition, exhibition_id, with_for_update=True)
    if exhibition.status != status:
        raise Refused(f"Exhibition {exhibition_id} is {exhibition.status}.")
    return exhibition


async def _plan(session: AsyncSession, exhibition: Exhibition) -> str:
    """One start per exhibition: a second put moves it. The decision: INSERTED or UPDATED."""
    handle = await start_enrolling.put(
        _key(exhibition.id), at=exhibition.enrolment_at, payload=exhibition.id, conn=session
    )
    return handle.decision


def _key(exhibition_id: int) -> str:
    return f"exhibition:{exhibition_id}"
