"""Build the files of a release, with every package of the build checked against requirements-dev.lock.

    python tools/release.py all dist       sdist, wheel, bill of materials, documentation and SHA256SUMS
    python tools/release.py wheel dist     the wheel alone, as the image needs it

uv builds: that of this environment, or one that pip installs from the lock into a temporary one. Needs only the standard
library. Files of an earlier release in the directory are removed first.
"""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import packages
import sbom

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("docs", "README.md", "README.zh-CN.md", "CHANGELOG.md", "LICENSE", "console/openapi.json")
MADE = ("*.whl", "*.tar.gz", "*.cdx.json", "SHA256SUMS")


@contextmanager
def uv() -> Iterator[Path]:
    """Provide a uv of the version of the lock."""
    own = Path(sys.executable).parent / "uv"
    if own.exists():
        yield own
        return
    with tempfile.TemporaryDirectory(prefix="horai-release-") as directory:
        place = Path(directory)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        only_uv = place / "uv.txt"
        only_uv.write_text(packages.entry_of(packages.LOCK.read_text(), "uv"))
        if packages.pip(python, "install", "--quiet", "--require-hashes", "-r", only_uv) != 0:
            sys.exit("error: pip could not install uv")
        yield python.parent / "uv"


def build(program: Path, directory: Path, kinds: Sequence[str] = ()) -> None:
    """Build the wheel from the source distribution, and both unless `kinds` says otherwise."""
    index = packages.index_of_pip(Path(sys.executable))
    environment = os.environ if index is None else {"UV_DEFAULT_INDEX": index, **os.environ}
    checked = ["--build-constraints", str(packages.LOCK), "--require-hashes"]
    command = [program, "build", "--quiet", *checked, *kinds, "--python", sys.executable, "--out-dir", directory, ROOT]
    if subprocess.run(command, env=environment, check=False).returncode != 0:  # noqa: S603
        sys.exit("error: uv could not build the package; the output above says why")
    (directory / ".gitignore").unlink(missing_ok=True)  # uv's own


def write_documents(file: Path) -> None:
    """Pack the documentation. The same files give the same bytes."""
    found = [
        path for name in DOCUMENTS for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(path for path in found if path.is_file()):
            entry = tarfile.TarInfo(f"horai-docs-{sbom.version()}/{path.relative_to(ROOT).as_posix()}")
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)
    file.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


def write_sums(directory: Path) -> None:
    """Write SHA256SUMS, which `sha256sum --check` reads."""
    files = sorted(path for pattern in MADE[:-1] for path in directory.glob(pattern))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (directory / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    """Build what the first argument names into the directory of the second."""
    if len(sys.argv) != 3 or sys.argv[1] not in {"all", "wheel"}:
        sys.exit("usage: release.py all|wheel DIRECTORY")
    directory = Path(sys.argv[2]).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    for old in [path for pattern in MADE for path in directory.glob(pattern)]:
        old.unlink()
    with uv() as program:
        build(program, directory, ["--wheel"] if sys.argv[1] == "wheel" else [])
    if sys.argv[1] == "all":
        sbom.write(directory / f"horai-{sbom.version()}.cdx.json")
        write_documents(directory / f"horai-docs-{sbom.version()}.tar.gz")
        write_sums(directory)


if __name__ == "__main__":
    main()
