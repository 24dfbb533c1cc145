"""The route of the live feed: server-sent events that name changed topics."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, FastAPI, Header, Request, Response

from horai.api.authentication import Authenticator, Caller, credentials_of
from horai.api.context import describe
from horai.api.replica_reads import writer_of
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.overview.feed import Feed
from horai.features.overview.stream import MEDIA_TYPE, Stream
from horai.features.overview.wire_events import ChangeOut

describe(ChangeOut)
router = APIRouter(prefix="/api/v1/events", tags=["events"], route_class=RoleRoute)

EXAMPLE = 'event: change\nid: 3f9c1e52-17\ndata: {"topics":["instances","jobs"]}\n\n'
SENT = {
    "description": "Server-sent events.",
    "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": EXAMPLE}},
}


@router.get("", response_class=Response, responses={200: SENT})
@needs(AccessRole.VIEWER)
async def get_events(request: Request, last_event_id: Annotated[str | None, Header()] = None) -> Response:
    """Watch for changes: `event: change` names the topics (`ChangeOut`) that may have changed, at most once a second.

    A comment is sent after 15 seconds of silence. A client that reconnects with the `Last-Event-ID` of a message that
    was not the last is told of every topic first. One server accepts 400 readers, 100 of them of one tenant and 50 from
    one address.
    """
    feed: Feed = request.app.state.feed
    authenticator: Authenticator = request.app.state.authenticator
    credentials = credentials_of(request)
    caller: Caller = request.state.caller
    reader = feed.enter(last_event_id, credentials.address, caller.tenant_id, sees_all=caller.is_platform)
    replicas = request.app.state.context.replicas
    if replicas is not None:  # the lists that the client loads now must show the change
        reader.on_news = partial(replicas.note_write, writer_of(caller))
    return Stream(feed, reader, lambda: authenticator.is_still_allowed(credentials))


def prepare(app: FastAPI) -> None:
    """Open the feed that all event streams read."""
    app.state.feed = Feed(app.state.context, app.state.limits)
    app.state.closing.append(app.state.feed.close)
