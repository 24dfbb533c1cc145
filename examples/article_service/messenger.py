"""The service's database and Horai cannot change in one transaction: what Horai was not told yet is told again.

An article is changed first and told after. Between the two anything may fail: the row itself says that Horai has not
heard of it (`told < version`), and the next round tells it again.

The messages about one article are sent one after another, each with the article as it is then. Otherwise the request of
an audit could arrive after the cancellation of a withdrawal and plan a publication again.
"""

import asyncio
import logging
from weakref import WeakValueDictionary

from .articles import Article
from .scheduler import Scheduler, Unreachable
from .store import Store

log = logging.getLogger(__name__)
PAUSE = 0.5


class Messenger:
    """Tells Horai of every change, at once or later."""

    def __init__(self, store: Store, scheduler: Scheduler) -> None:
        self._store = store
        self._scheduler = scheduler
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def tell(self, article: Article) -> bool:
        """Tell Horai about the article. Return true if Horai has taken it in; if not, a later round tells it again."""
        async with self._turns.setdefault(article.id, asyncio.Lock()):
            current = await self._store.find(article.id)
            if current.told >= article.version:
                return True
            try:
                await self._scheduler.tell(current)
            except Unreachable as error:
                log.warning("%s", error)
                return False
            await self._store.tell(current)
            return True

    async def keep_telling(self) -> None:
        """Tell Horai every `PAUSE` seconds about the articles it has not heard of, until cancelled."""
        while True:
            try:
                for article in await self._store.untold():
                    if not await self.tell(article):
                        break  # Horai does not answer: the others can wait, too
            except Exception as error:  # of any kind: a loop that ends here leaves articles untold
                log.warning("a round has failed, the next one follows: %r", error)
            await asyncio.sleep(PAUSE)
