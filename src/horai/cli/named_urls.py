"""URLs that the operator gives names to: databases of reconcilers, and message brokers of sinks.

Errors never show a URL: it may contain a password.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from horai.cli.errors import BadUsage, refuse_flag
from horai.db.database_location import secret
from horai.db.urls import plain_url

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class NamedUrls:
    """One kind of named URL: its flag, its variables, and how a URL begins."""

    flag: str
    noun: str
    prefix: str
    schemes: tuple[str, ...]
    example: str

    def chosen(self, given: Iterable[str] | None, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the URLs by name. A flag overrides a variable."""
        urls = dict(self._of(environ))
        named = set[str]()
        for text in given or ():
            name, _, url = text.partition("=")
            if fault := self._fault(name, url):
                refuse_flag(self.flag, fault)
            if name in named:
                refuse_flag(self.flag, f"{name} is given twice")
            named.add(name)
            urls[name] = plain_url(url)
        return urls

    def variable(self, name: str) -> str:
        """Return the environment variable that holds the URL of a name."""
        return self.prefix + name.upper()

    def _of(self, environ: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        variables = {name.removesuffix("_FILE") for name in environ if name.startswith(self.prefix)}
        for variable in sorted(variables):
            name, url = variable.removeprefix(self.prefix).lower(), secret(variable, environ)
            if url is None:
                continue
            if fault := self._fault(name, url):
                raise BadUsage(f"{variable}: {fault}.", f"Write {self.example}.")
            yield name, plain_url(url)

    def _fault(self, name: str, url: str) -> str | None:
        if not _NAME.fullmatch(name) or name.endswith("_file"):
            return f"a {self.noun} is NAME=URL, its name a letter, then up to 62 of a-z, 0-9 and _, not ending in _file"
        if not plain_url(url).startswith(self.schemes):
            return f"the URL of {name} must begin with {' or '.join(self.schemes)}"
        return None


SOURCES = NamedUrls(
    "--source",
    "source",
    "HORAI_SOURCE_",
    ("postgresql://",),
    "HORAI_SOURCE_SHOP=postgresql://user:password@host:5432/name",
)
BROKERS = NamedUrls(
    "--broker",
    "broker",
    "HORAI_BROKER_",
    ("nats://", "tls://", "kafka://"),
    "HORAI_BROKER_MAIN=nats://user:password@host:4222",
)
