"""The databases of the test server: one migrated template, and copies of it."""

from horai.db.embedded import EmbeddedPostgres

TEMPLATE = "horai_template"


def url_for(server: EmbeddedPostgres, database: str) -> str:
    """Another database of the same server."""
    return server.url.replace("/horai?", f"/{database}?")
