"""The errors of migrations."""

from horai.core.errors import HoraiError


class MigrationError(HoraiError):
    """The database cannot be migrated to this version."""

    code = "SCH_500_MIGRATION"
    title = "Migration refused"


class MigrationBlocked(MigrationError):
    """Another session held a lock for longer than the migration waits."""

    code = "SCH_503_MIGRATION_BLOCKED"
    title = "Migration blocked"
