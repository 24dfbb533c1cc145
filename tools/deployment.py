"""Check the chart with Helm itself: lint it, and compare its output with that of the renderer that the tests use.

    make deployment

The package helm-python-sdk contains Helm. It has 70 MB, so it is not among the packages of the tests: this tool installs
the version below into a temporary environment, for the Python that runs it.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import charts  # noqa: E402

HASHES = (
    "078bac2464ea2f4b5af24cf7873e8f78ee3f3c216766fcdea41b7c61f47275b1",
    "28cc13abaf134c3a7e37f070c939be8d9cdc9825c3c8b8b2d35161073bcd4578",
)
HELM = "helm-python-sdk==0.2.2 " + " ".join(f"--hash=sha256:{digest}" for digest in HASHES)
RENDER = """
import json, sys
import helm_python as helm
given = json.load(sys.stdin)
chart = helm.Chart.load(given["chart"])
told = {}
for name, values in given["values"].items():
    chart.validate_schema(values)
    report = helm.lint(given["chart"], values, strict=True)
    told[name] = {"texts": chart.render(values, name="demo", namespace="prod"), "report": report}
json.dump({"version": helm.helm_sdk_version(), "told": told}, sys.stdout)
"""
WARNING = 2
"""The lowest severity of a finding that counts."""


def with_helm(given: str) -> str:
    """Run the program RENDER in an environment with Helm, and return its output."""
    with tempfile.TemporaryDirectory(prefix="horai-helm-") as directory:
        place = Path(directory)
        venv.create(place / "venv", with_pip=True)
        (place / "helm.txt").write_text(HELM + "\n")
        python = str(place / "venv" / "bin" / "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--require-hashes", "-r"]
        subprocess.run([*pip, str(place / "helm.txt")], check=True)  # noqa: S603
        done = subprocess.run([python, "-c", RENDER], input=given, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
        return done.stdout


def main() -> None:
    """Exit with 1 if Helm refuses the chart, or renders it otherwise than the tests do."""
    told = json.loads(with_helm(json.dumps({"chart": str(charts.CHART), "values": charts.VALUES})))
    faults: list[str] = []
    for name, each in told["told"].items():
        report = each["report"]
        faults += [f"{name}: {message}" for message in report["messages"] if message["severity"] >= WARNING]
        faults += [f"{name}: {error}" for error in report["errors"]]
        ours = charts.texts(charts.VALUES[name])
        different = [file for file in ours.keys() | each["texts"].keys() if ours.get(file) != each["texts"].get(file)]
        faults += [f"{name}: {file} differs from the output of Helm" for file in sorted(different)]
    if faults:
        sys.exit("\n".join(faults))
    count = sum(len(each["texts"]) for each in told["told"].values())
    print(f"Helm {told['version']} accepts the chart and renders the same {count} files as the tests")


if __name__ == "__main__":
    main()
