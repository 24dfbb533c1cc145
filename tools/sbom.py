"""Write the software bill of materials of a release: CycloneDX 1.6 as JSON, of the locks alone.

It lists the packages of requirements.lock, with the hashes of their files, and the packages of console/package-lock.json
whose code is in the built console. The same locks and version give the same bytes. Needs only the standard library.

    python tools/sbom.py dist/horai-0.1.0.cdx.json
"""

import base64
import json
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
PYTHON_LOCK = ROOT / "requirements.lock"
CONSOLE_LOCK = ROOT / "console" / "package-lock.json"
NAMESPACE = uuid.UUID("6d3e2f1c-7c37-5a0e-9d1b-2f6f0c9b1a55")
"""The namespace of the serial numbers, which are derived from the contents."""
_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^\s;\\]+)(?P<rest>.*(?:\n +--hash=.*)*)", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_MARKER = re.compile(r"^ *; *([^\\\n]+)")


def version() -> str:
    """Return the version of Horai."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/horai/__init__.py").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("error: src/horai/__init__.py has no version")
    return found[1]


def python_components(lock: str) -> Iterator[dict[str, Any]]:
    """Yield the packages of a lock of pip. A package with a marker is needed on some platforms only."""
    for entry in _ENTRY.finditer(lock):
        name, number = entry["name"], entry["version"]
        purl = f"pkg:pypi/{name}@{quote(number, safe='.')}"
        marker = _MARKER.match(entry["rest"])
        properties = [{"name": "horai:marker", "value": marker[1].strip()}] if marker else []
        files = [
            {"type": "distribution", "url": purl, "hashes": [{"alg": "SHA-256", "content": digest}]}
            for digest in sorted(_HASH.findall(entry["rest"]))
        ]
        yield _component(name, number, purl) | {
            "externalReferences": files,
            **({"properties": properties} if properties else {}),
        }


def console_components(lock: str) -> Iterator[dict[str, Any]]:
    """Yield the packages whose code may be in the built console: those of package-lock.json that are not for development."""
    packages: dict[str, dict[str, Any]] = json.loads(lock)["packages"]
    for path, package in sorted(packages.items()):
        if not path or package.get("dev") or package.get("devOptional"):
            continue
        name = package.get("name") or path.rpartition("node_modules/")[2]
        group, _, bare = name.rpartition("/")
        purl = f"pkg:npm/{quote(name, safe='/')}@{package['version']}"
        algorithm, _, digest = package["integrity"].partition("-")
        hashes = [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": base64.b64decode(digest).hex()}]
        licence = [{"license": {"name": package["license"]}}] if package.get("license") else []
        yield _component(bare, package["version"], purl) | {
            "hashes": hashes,
            **({"group": group} if group else {}),
            **({"licenses": licence} if licence else {}),
        }


def _component(name: str, number: str, purl: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": number, "purl": purl}


def bill() -> dict[str, Any]:
    """Return the bill of materials of this checkout."""
    listed = {each["bom-ref"]: each for each in python_components(PYTHON_LOCK.read_text())}
    listed |= {each["bom-ref"]: each for each in console_components(CONSOLE_LOCK.read_text())}
    reference = f"pkg:pypi/horai@{version()}"
    horai = {
        "type": "application",
        "bom-ref": reference,
        "name": "horai",
        "version": version(),
        "purl": reference,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    components = sorted(listed.values(), key=lambda each: each["bom-ref"])
    serial = uuid.uuid5(NAMESPACE, json.dumps([horai, components], sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": horai},
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def write(file: Path) -> None:
    """Write the bill to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(bill(), indent=1) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / f"horai-{version()}.cdx.json")
