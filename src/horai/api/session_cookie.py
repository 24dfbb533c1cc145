"""The cookie of a console session: out of reach of scripts and of other sites."""

from datetime import timedelta

from starlette.responses import Response

from horai.api.authentication import COOKIE

SESSION = timedelta(hours=12)


def set_session(response: Response, session: str, seconds: float = SESSION.total_seconds()) -> None:
    """Give the browser the id of a session that lasts for this time."""
    response.set_cookie(COOKIE, session, int(seconds), path="/", secure=True, httponly=True, samesite="strict")


def forget_session(response: Response) -> None:
    """Make the browser forget its session."""
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
