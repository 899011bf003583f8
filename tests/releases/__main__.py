"""`python -m tests.releases [RELEASE ...]`: run first steps on releases of Spark.

If all releases are run, the results are written as a table to docs/releases.md. The exit code is 1
if any step failed on any release.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iceberg_pyspark.spark.bridge.features import FEATURES
from tests.releases.environments import python_of
from tests.releases.first_steps import PARTS, STEPS
from tests.releases.releases import RELEASES

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs/releases.md"


def run_on(release: str) -> dict[str, Any]:
    """Run the first steps on a release and return their results."""
    with tempfile.TemporaryDirectory(prefix=f"iceberg-pyspark-{release}-") as folder:
        done = subprocess.run(
            [str(python_of(release)), "-m", "tests.releases.first_steps", folder],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"Spark {release}: first steps did not run\n{done.stderr}")
    sys.stderr.write(done.stderr[-4000:] if "Traceback" in done.stderr else "")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def summary(result: Mapping[str, Any]) -> str:
    """Return one line about a release and one line for each failed step."""
    steps: Mapping[str, str | None] = result["steps"]
    wrong = {name: why for name, why in steps.items() if why is not None}
    lines = [f"Spark {result['release']}: {len(steps) - len(wrong)} of {len(steps)}"]
    lines += [f"  not native: {name}: {why}" for name, why in result["missing"].items()]
    lines += [f"  {name}: {why}" for name, why in wrong.items()]
    return "\n".join(lines)


def table_of(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the documentation page."""
    rows = [["Spark", *(result["release"] for result in results)], ["---"] * (len(results) + 1)]
    for part in PARTS:
        names = [name for name, (of, _) in STEPS.items() if of == part]
        done = [sum(result["steps"][name] is None for name in names) for result in results]
        rows.append([part, *(f"{count} of {len(names)}" for count in done)])
    for feature in FEATURES:
        missing = [feature.name in result["missing"] for result in results]
        rows.append([feature.name, *("not native" if m else "native" for m in missing)])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    otherwise = "\n".join(f"| {f.name} | {f.otherwise} |" for f in FEATURES)
    return f"""# Releases of Spark

`make releases` writes this page. It runs {len(STEPS)} first steps on each release of Spark and
compares their rows. The first lines of the table count the steps that succeeded; the other lines
say which features are native.

{table}

`session.describe()` and `python -m iceberg_pyspark.doctor` say the same about a session. If a
release lacks a feature, `install()` logs one line about it (about times with a zone in ORC files at
level INFO), and:

| without | what happens |
| --- | --- |
{otherwise}
"""


def main() -> int:
    """Run the releases that the arguments name; return 1 if a step failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", default=[])
    request = parser.parse_args().releases or list(RELEASES)
    results = []
    for release in request:
        result = run_on(release)
        results.append(result)
        sys.stdout.write(summary(result) + "\n")
        sys.stdout.flush()
    if request == list(RELEASES):
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(table_of(results), encoding="utf-8")
    return int(any(why is not None for result in results for why in result["steps"].values()))


if __name__ == "__main__":
    sys.exit(main())
