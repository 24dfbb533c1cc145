"""Claims in hand, for what settles them."""

import make
from stages import Workbench

from horai.db.claims import Claim


async def hold(bench: Workbench, count: int) -> list[Claim]:
    """Claims in hand."""
    await make.job(bench.scope)
    await make.many(bench.scope, count)
    claimed = await make.claim(bench.connection, bench.lease.incarnation)
    bench.in_flight.add(claimed)
    return [row.held for row in claimed]
