"""`horai worker` in a process that can be frozen and killed."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from harness import NodeProcess

from horai.db.pool import Platform

Look = Callable[[], Awaitable[bool]]


class WorkerProcess(NodeProcess):
    """A worker of the module that stands in `place`."""

    def __init__(self, place: Path, name: str, url: str, app: str, *flags: str) -> None:
        super().__init__(place / name, url, PYTHONPATH=str(place))
        self.name = name
        self._arguments = ("worker", app, "--name", name, *flags)

    @property
    def is_alive(self) -> bool:
        assert self._process is not None
        return self._process.poll() is None

    def end(self) -> None:
        """However it is: stopped, frozen or gone."""
        if self.is_alive:
            self.kill()

    def has_work(self, connection: Platform) -> Look:
        """Return a check that is true while the worker has claimed an instance that is not settled."""

        async def look() -> bool:
            return await connection.fetchval(
                """
                select exists (select from horai.instance_live live join horai.node on node.incarnation = live.node
                where node.name = $1 and live.state = 1)
                """,
                self.name,
            )

        return look

    def is_rescued(self, connection: Platform) -> Look:
        """Return a check that is true once all that its last incarnation held has been given to others."""

        async def look() -> bool:
            return await connection.fetchval(
                "select rescued_at is not null from horai.node where name = $1 order by incarnation desc limit 1",
                self.name,
            )

        return look
