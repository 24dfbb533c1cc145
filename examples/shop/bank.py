"""The bank. It is another company: the shop cannot roll a transfer back, only send another one."""

from sqlalchemy.dialects.postgresql import insert

from .tables import Transfer, sessions


async def transfer(key: str, order_id: int, cents: int) -> None:
    """Book a transfer to the shop, once per key."""
    async with sessions.begin() as session:
        booking = insert(Transfer).values(key=key, order_id=order_id, cents=cents)
        await session.execute(booking.on_conflict_do_nothing())
