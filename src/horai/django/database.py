"""The URL of a database of the Django project."""

from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings  # pyright: ignore[reportMissingTypeStubs]
from django.core.exceptions import ImproperlyConfigured  # pyright: ignore[reportMissingTypeStubs]


def url_of(alias: str) -> str:
    """Return the URL of a PostgreSQL database in `DATABASES`. Raise `ImproperlyConfigured` if it is not one."""
    databases: dict[str, dict[str, Any]] = settings.DATABASES
    found = databases.get(alias)
    if found is None or "postgresql" not in str(found.get("ENGINE")):
        raise ImproperlyConfigured(f"DATABASES[{alias!r}] is not a PostgreSQL database, and Horai needs one.")
    user, password = quote(str(found.get("USER") or ""), ""), quote(str(found.get("PASSWORD") or ""), "")
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    host, port = str(found.get("HOST") or ""), str(found.get("PORT") or "")
    if host.startswith("/"):
        where = {"host": host, **({"port": port} if port else {})}
        return f"postgresql://{login}/{quote(str(found['NAME']), '')}?{urlencode(where)}"
    return f"postgresql://{login}{host}{f':{port}' if port else ''}/{quote(str(found['NAME']), '')}"
