"""The ids that a stage has to decide on, in batches: of the overlap gate and of the workflow stage."""

from collections.abc import Awaitable, Callable, Sequence


class PendingIds(set[int]):
    """Ids that wait for a decision. `decide` removes an id when its decision has been made, not before."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self._batch = batch

    async def add_pages(self, find: Callable[[int, int], Awaitable[Sequence[int]]]) -> None:
        """Add all ids that `find(after, limit)` returns, page by page in ascending order."""
        after = 0
        while page := await find(after, self._batch):
            self.update(page)
            after = page[-1]
            if len(page) < self._batch:
                return

    async def decide(self, decide: Callable[[set[int]], Awaitable[set[int]]]) -> None:
        """Decide on all ids, batch by batch. Keep the ids that `decide` returns: another transaction held them.

        After an error, the ids of its batch and those that were held before are kept.
        """
        kept: set[int] = set()
        try:
            while self:
                batch = {self.pop() for _ in range(min(self._batch, len(self)))}
                kept |= batch
                kept = (kept - batch) | await decide(batch)
        finally:
            self.update(kept)
