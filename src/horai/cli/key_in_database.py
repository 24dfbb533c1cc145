"""A key that is written to the database itself, without a server."""

from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from horai.api.body import invalid_shape
from horai.cli.database import opened_database
from horai.core.roles import AccessRole
from horai.db.database_location import DatabaseLocation
from horai.features.access.service import KeyWish, create_key_by_operator
from horai.features.access.wire import KeyIn, NewKeyOut


async def create_key(place: DatabaseLocation, body: Mapping[str, Any]) -> bytes:
    """Create a key. Return it as the server would, with its text."""
    try:
        given = KeyIn.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise invalid_shape(error.errors()) from error
    wish = KeyWish(AccessRole(given.role), given.tenant, given.name, given.networks or (), given.expires_at)
    async with opened_database(place, may_create=False) as connection:
        shown = await create_key_by_operator(connection, wish)
    return msgspec.json.encode(NewKeyOut.encode(shown.row, key=shown.text))
