"""Run a coroutine at once, up to its first wait.

Most functions of a fast worker never wait. Such a call needs no place, no deadline and no entry in the list of running
calls: nothing else in the event loop can run before it has ended.
"""

from collections.abc import Awaitable, Coroutine, Generator
from types import CoroutineType, coroutine
from typing import Any, cast


class Waiting(Exception):
    """The coroutine waits; awaiting `rest` continues it."""

    def __init__(self, rest: Awaitable[Any]) -> None:
        super().__init__()
        self.rest = rest


def first_step(called: Awaitable[Any]) -> Any:
    """Return the result of a coroutine that ends without a wait. Raises `Waiting` at its first wait.

    The task that made this step must await the rest: the coroutine may have asked which task runs it. An awaitable of
    any other kind cannot be stepped: all of it is the rest.
    """
    if not isinstance(called, CoroutineType):
        raise Waiting(called)
    step = cast("CoroutineType[Any, Any, Any]", called)
    try:
        waits_for = step.send(None)
    except StopIteration as end:
        return end.value
    raise Waiting(_resumed(step, waits_for))


@coroutine
def _resumed(called: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Continue a started coroutine to its end: pass its waits to the event loop, and the answers back to it."""
    while True:
        thrown: BaseException | None = None
        sent: Any = None
        try:
            sent = yield waits_for
        except GeneratorExit:
            called.close()
            raise
        except BaseException as error:
            thrown = error
        try:
            waits_for = called.send(sent) if thrown is None else called.throw(thrown)
        except StopIteration as end:
            return end.value
