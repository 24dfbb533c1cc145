"""The Helm chart, rendered without Helm. `make deployment` compares the result with that of Helm itself."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml
from gotpl.exts.helm import HelmTemplateEngine

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "horai"

LEAST: Mapping[str, Any] = {"database": {"existingSecret": "db"}, "access": {"insecure": True}}
"""The fewest values that the chart accepts."""
MOST: Mapping[str, Any] = {
    "fullnameOverride": "timer",
    "image": {"repository": "example/horai", "digest": "sha256:" + "0" * 64, "pullSecrets": [{"name": "pull"}]},
    "database": {"existingSecret": "db", "urlKey": "url"},
    "migration": {"existingSecret": "owner", "adminUrlKey": "admin-url"},
    "encryption": {"existingSecret": "keys"},
    "audit": {"existingSecret": "keys"},
    "access": {"publicUrl": "https://horai.example.com", "tls": {"existingSecret": "tls"}},
    "callbackAllow": ["10.0.0.0/8", "192.168.0.0/16"],
    "graceSeconds": 30,
    "api": {
        "service": {"type": "LoadBalancer", "port": 443, "annotations": {"example.com/pool": "a"}},
        "podAnnotations": {"example.com/pod": "a"},
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "extraEnv": [{"name": "HORAI_OTLP_ENDPOINT", "value": "http://collector:4318"}],
    },
    "node": {
        "persistence": {"enabled": True, "storageClassName": "fast"},
        "autoscaling": {"enabled": True},
        "podAnnotations": {"example.com/pod": "b"},
        "extraEnv": [{"name": "HORAI_KEEP_HISTORY", "value": "30d"}],
    },
    "worker": {
        "enabled": True,
        "application": "shop.jobs:app",
        "image": "example/shop:1",
        "queues": ["mail", "slow"],
        "podAnnotations": {"example.com/pod": "c"},
        "extraEnv": [{"name": "HORAI_ISOLATED", "value": "2"}],
    },
    "serviceAccount": {"annotations": {"example.com/role": "horai"}},
    "networkPolicy": {
        "apiFrom": [{"namespaceSelector": {"matchLabels": {"team": "web"}}}],
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
    },
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "existingSecret": "metrics",
        "tlsConfig": {"serverName": "horai.example.com"},
    },
}
"""Values that switch on every part of the chart."""
PROXIED: Mapping[str, Any] = {
    "database": {"existingSecret": "db"},
    "access": {"trustedProxies": ["10.0.0.0/8", "fd00::/8"], "requireKey": False},
    "migration": {"enabled": False},
    "serviceAccount": {"create": False},
    "networkPolicy": {"enabled": False},
    "node": {"autoscaling": {"enabled": True, "desiredDispatchers": False}, "podDisruptionBudget": {"enabled": False}},
}
VALUES = {"least": LEAST, "most": MOST, "proxied": PROXIED}


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `base`, overridden by those of `more` as Helm does it."""
    both = dict(base)
    for key, value in more.items():
        known = both.get(key)
        both[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return both


def values_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all values, those of values.yaml included."""
    return merged(yaml.safe_load((CHART / "values.yaml").read_text()), given)


def refusals(given: Mapping[str, Any]) -> list[str]:
    """Return why values.schema.json refuses the values."""
    schema = jsonschema_rs.Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))
    return [str(error.message) for error in schema.iter_errors(values_of(given))]


def texts(given: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the rendered templates by their names. Raises if a template fails."""
    return _texts(json.dumps(given))


@lru_cache
def _texts(given: str) -> Mapping[str, str]:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    root = {
        "Values": values_of(json.loads(given)),
        "Chart": {name[0].upper() + name[1:]: value for name, value in chart.items()},
        "Release": {"Name": "demo", "Namespace": "prod", "Service": "Helm", "Revision": 1},
    }
    sources = {f"horai/templates/{path.name}": path.read_text() for path in sorted((CHART / "templates").iterdir())}
    return dict(HelmTemplateEngine(sources).render({name: root for name in sources if not name.endswith(".tpl")}))


def manifests(given: Mapping[str, Any]) -> list[Any]:
    """Return the objects that the chart makes of the values."""
    rendered = {name: text for name, text in texts(given).items() if name.endswith(".yaml")}
    return [each for text in rendered.values() for each in yaml.safe_load_all(text) if each]


def pods(objects: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each object with a pod template, and the pod."""
    for each in objects:
        template = each.get("spec", {}).get("template")
        if isinstance(template, dict):
            yield each["metadata"]["name"], template["spec"]
