"""The doctor in an environment without Spark."""

from __future__ import annotations

import subprocess
import sys


def test_without_pyspark_it_says_so_and_ends_with_2() -> None:
    absent = "import sys; sys.modules['pyspark'] = None"
    run = "from iceberg_pyspark.doctor import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", f"{absent}\n{run}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("no Spark here: ")
