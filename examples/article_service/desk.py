"""The objects that every request of the service works with."""

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from .messenger import Messenger
from .press import Press
from .store import Store


@dataclass(frozen=True, slots=True)
class Desk:
    """The service's means. `secret` is what Horai signs its calls with."""

    store: Store
    messenger: Messenger
    secret: str
    press: Press = field(default_factory=Press)


def desk_of(request: Request) -> Desk:
    """That of the application."""
    return cast("Desk", request.app.state.desk)


DeskDep = Annotated[Desk, Depends(desk_of)]
