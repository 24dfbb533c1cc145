"""postgresql.conf, pg_hba.conf and the command line. The files are rewritten at each start."""

from collections.abc import Mapping
from pathlib import Path

from horai.embedded.area import Area
from horai.embedded.errors import EmbeddedError
from horai.embedded.settings import EmbeddedSettings

TUNING = {
    "wal_level": "replica",
    "max_wal_size": "2GB",
    # Old WAL segments are recycled: creating a new one blocks every commit for tens of milliseconds.
    "min_wal_size": "512MB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "autovacuum_naptime": "10s",  # rows of the hot table live for seconds
    "jit": "off",
    # Parallel workers would take the cores of the hot loop, and shared memory that small containers lack.
    "max_parallel_workers_per_gather": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # The role and Horai's schema have the same name; objects of users must not go into that schema.
    "search_path": "public",
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] %a ",
    "log_min_duration_statement": "1s",
    # Parameters, failing rows and quoted JSON contain payloads and secrets.
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}

ACCESS = """\
# The directory of the socket has mode 0700, so only its owner and root can connect. No host lines: no TCP.
local all         all trust
local replication all trust
"""


def write_config(area: Area, settings: EmbeddedSettings) -> None:
    """Write both files.

    The file of initdb is included first, because it has the kind of shared memory that works here.
    """
    refused = sorted(settings.extra.keys() & _fixed(area, settings, area.sockets).keys())
    if refused:
        raise EmbeddedError(
            f"The embedded PostgreSQL does not let {', '.join(refused)} be changed.",
            "Give the URL of a PostgreSQL of your own, where every setting is yours: --database-url postgresql://…",
        )
    chosen = {
        **TUNING,
        "shared_buffers": settings.shared_buffers,
        "max_connections": str(settings.max_connections),
        **settings.extra,
    }
    lines = [f"include {_quoted(str(area.cluster / 'postgresql.conf'))}"]
    lines += [f"{name} = {_quoted(value)}" for name, value in chosen.items()]
    _replace(area.config, "# Written by Horai at each start.\n" + "\n".join(lines) + "\n")
    _replace(area.access, ACCESS)


def server_command(binaries: Path, area: Area, settings: EmbeddedSettings, sockets: Path) -> list[str | Path]:
    """Return the command of the postmaster.

    Fixed settings are in it: the command line overrides files and ALTER SYSTEM.
    """
    command: list[str | Path] = [binaries / "postgres", "-D", area.cluster]
    for name, value in _fixed(area, settings, sockets).items():
        command += ["-c", f"{name}={value}"]
    return command


def _fixed(area: Area, settings: EmbeddedSettings, sockets: Path) -> Mapping[str, str]:
    return {
        "config_file": str(area.config),
        "hba_file": str(area.access),
        "listen_addresses": "",
        "unix_socket_directories": '"' + str(sockets).replace('"', '""') + '"',
        "unix_socket_permissions": "0700",
        "port": str(settings.port),
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
    }


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n") + "'"


def _replace(file: Path, text: str) -> None:
    """Remove the file and write a new one: a symlink in its place is removed, never followed."""
    file.unlink(missing_ok=True)
    with file.open("x") as output:
        output.write(text)
    file.chmod(0o644)
