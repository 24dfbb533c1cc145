"""The definition of a reconciler as files and kept versions have it."""

from horai.features.reconcile.definition import SCHEDULE, shown_source
from horai.features.reconcile.store import ReconcilerRow
from horai.operations.versions import StoredDefinition, definition_text


def stored_definition(row: ReconcilerRow) -> StoredDefinition:
    """Return the definition of a reconciler, without the secrets of its source."""
    schedule = {field: row.document[field] for field in SCHEDULE if row.document.get(field) is not None}
    text = definition_text({"name": row.name, "job": row.target, **schedule, "source": shown_source(row.source)})
    return StoredDefinition("reconciler", row.id, row.name, row.version, row.updated_at, row.declared_by, text)
