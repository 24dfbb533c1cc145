"""Write docs/reference/errors.md and settings.md from the code they describe: `make docs`."""

import ast
import dataclasses
import inspect
import json
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from horai.core import errors, settings
from horai.core.errors import HoraiError
from horai.time.durations import format_duration

WORDS = Path(__file__).parent.parent / "console" / "src" / "i18n" / "en" / "common.json"
REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
MADE = "<!-- made by tools/reference_doc.py: do not edit -->"


def errors_page() -> str:
    """Return the page of all errors that a user can get."""
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
            "Every error is `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `code` and `detail`. Some also have a",
            "`hint` and `errors: [{field, message}]`. A request that is answered with an error has no partial effect.",
            "",
            "| status | code | when |",
            "|---|---|---|",
            *rows,
            "",
            "A failed attempt has its own code, which instances, dead letters and log lines show. If a Python function raises, the code",
            "is the name of the exception.",
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
    """Return the page of the engine's settings and the limits of a request."""
    meanings = _meanings(settings.EngineSettings)
    paces = [
        f"| `{f.name}` | {'none' if f.default in ((), dataclasses.MISSING) else _shown(f.default)} | {meanings[f.name]} |"
        for f in dataclasses.fields(settings.EngineSettings)
    ]
    provider, replica = _meanings(settings.OidcSettings), _meanings(settings.ReplicaSettings)
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
            "Flags and environment variables: `horai up --help`. Settings of the engine:",
            "",
            "| setting | default | meaning |",
            "|---|---|---|",
            *paces,
            "",
            "Settings of the identity provider (`--oidc-...`):",
            "",
            "| setting | default | meaning |",
            "|---|---|---|",
            *(
                f"| `{f.name}` | {_default(f)} | {provider[f.name]} |"
                for f in dataclasses.fields(settings.OidcSettings)
            ),
            "",
            "Settings of read replicas:",
            "",
            "| setting | default | meaning |",
            "|---|---|---|",
            *(
                f"| `{f.name}` | {_default(f)} | {replica[f.name]} |"
                for f in dataclasses.fields(settings.ReplicaSettings)
            ),
            "",
            "Limits of the HTTP server, in bytes where they are sizes (`connections`: also half of the file descriptors):",
            "",
            "| limit | default |",
            "|---|---|",
            *server,
            "",
            "Fixed limits:",
            "",
            "| limit | value |",
            "|---|---|",
            *limits,
            "",
        ]
    )


def _meanings(kind: type) -> dict[str, str]:
    """Return the docstring below each field; a field without one is a KeyError of the page."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is dataclasses.MISSING:
        return "required"
    return " ".join(field.default) if isinstance(field.default, tuple) else _shown(field.default)


def _shown(value: object) -> str:
    return format_duration(value) if isinstance(value, timedelta) else str(value)


PAGES = {"errors.md": errors_page, "settings.md": settings_page}


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())


if __name__ == "__main__":
    main()
