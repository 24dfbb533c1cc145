"""The flags of traces."""

from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import setting
from horai.core.settings import EngineSettings

OtlpEndpoint = Annotated[
    str | None,
    setting(
        "--otlp-endpoint",
        about="OpenTelemetry collector (OTLP over HTTP) to send traces to; off without it.",
        metavar="URL",
    ),
]
TraceRatio = Annotated[str, setting("--trace-ratio", about="Share of the traces to record, 0 to 1.", metavar="RATIO")]

PATH = "/v1/traces"
PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def with_traces(engine: EngineSettings, endpoint: str | None, ratio: str) -> EngineSettings:
    """Return the settings of traces. Raises for the flag that is wrong, and if OpenTelemetry is not installed."""
    share = _share(ratio)
    if not endpoint:
        return replace(engine, trace_ratio=share)
    collector = _collector(endpoint)
    if not all(map(_is_installed, PACKAGES)):
        raise BadUsage("Traces need OpenTelemetry, which is not installed.", "Install it: pip install 'horai[otel]'.")
    return replace(engine, otlp_endpoint=collector, trace_ratio=share)


def trace_variables(engine: EngineSettings) -> dict[str, str]:
    """Return the variables by which another process sends its traces to the same collector."""
    if engine.otlp_endpoint is None:
        return {}
    return {"HORAI_OTLP_ENDPOINT": engine.otlp_endpoint, "HORAI_TRACE_RATIO": str(engine.trace_ratio)}


def _collector(endpoint: str) -> str:
    """Return the URL that spans are posted to. A URL without the path of traces is that of the collector."""
    parts = _parts(endpoint)
    if parts is None:
        refuse_flag("--otlp-endpoint", "must be an address such as http://127.0.0.1:4318")
    if parts.username is not None or parts.query or parts.fragment:
        refuse_flag(
            "--otlp-endpoint",
            "must not have a user or a query: OTEL_EXPORTER_OTLP_HEADERS holds what the collector asks for",
        )
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(PATH) else path + PATH).geturl()


def _parts(url: str) -> SplitResult | None:
    """Return the parts of an HTTP URL; None if it is not one."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_http else None


def _share(ratio: str) -> float:
    try:
        share = float(ratio)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        refuse_flag("--trace-ratio", f"{ratio[:40]!r} is not a number from 0 to 1")
    return share


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):
        return False
