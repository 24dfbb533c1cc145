"""Writes docs/reference/errors.md and settings.md from the code they describe: `make docs`."""

import dataclasses
import inspect
import json
from datetime import timedelta
from pathlib import Path

from horai.core import errors, settings
from horai.core.errors import HoraiError
from horai.time.durations import format_duration

WORDS = Path(__file__).parent.parent / "console" / "src" / "i18n" / "en" / "common.json"
REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
MADE = "<!-- made by tools/reference_doc.py: do not edit -->"


def errors_page() -> str:
    """Every error a user can meet."""
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, HoraiError)]
    rows = [
        f"| {kind.status} | `{kind.code}` | {(inspect.getdoc(kind) or '').splitlines()[0]} |"
        for kind in sorted(kinds, key=lambda kind: (kind.status, kind.code))
    ]
    return "\n".join(
        [
            "# Errors",
            "",
            MADE,
            "",
            "Every error is `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `code` and `detail`, and where it",
            "helps a `hint` and `errors: [{field, message}]`. Nothing is half done when one is answered.",
            "",
            "| status | code | when |",
            "|---|---|---|",
            *rows,
            "",
            "A failed attempt has a code of its own, which instances, dead letters and log lines show. A Python function's is the",
            "name of the exception.",
            "",
            "| code | meaning |",
            "|---|---|",
            *(f"| `{code}` | {meaning} |" for code, meaning in _faults().items()),
            "",
        ]
    )


def _faults() -> dict[str, str]:
    """Return the codes of failed attempts and their meanings, as the console words them."""
    words = json.loads(WORDS.read_text())["fault"]
    return {
        "HTTP_<status>" if code == "HTTP" else code: text.replace("{{status}}", "that status")
        for code, text in words.items()
    }


def settings_page() -> str:
    """The engine's paces and the limits of a request."""
    paces = [
        f"| `{f.name}` | {_shown(f.default)} |"
        for f in dataclasses.fields(settings.EngineSettings)
        if f.name != "callback_allow"
    ]
    server = [f"| `{f.name}` | {_shown(f.default)} |" for f in dataclasses.fields(settings.ServerLimits)]
    limits = [
        f"| `{name}` | {value:,} |"
        for name, value in vars(settings).items()
        if name.isupper() and isinstance(value, int)
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            MADE,
            "",
            "Flags and environment variables: `horai up --help`. What the engine paces itself by:",
            "",
            "| setting | default |",
            "|---|---|",
            *paces,
            "",
            "Limits of the HTTP server, in bytes where they are sizes (`connections`: also half of the file descriptors):",
            "",
            "| limit | default |",
            "|---|---|",
            *server,
            "",
            "What is fixed:",
            "",
            "| limit | value |",
            "|---|---|",
            *limits,
            "",
        ]
    )


def _shown(value: object) -> str:
    return format_duration(value) if isinstance(value, timedelta) else str(value)


PAGES = {"errors.md": errors_page, "settings.md": settings_page}


def main() -> None:
    """Writes the pages."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())


if __name__ == "__main__":
    main()
