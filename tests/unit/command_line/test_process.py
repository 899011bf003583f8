"""The command as a separate process: its imports, and its behaviour in a shell."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice

COMMAND = (sys.executable, "-m", "iceberg_pyspark.command_line")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(tmp_path), "PYICEBERG_HOME": str(tmp_path)}


def test_help_and_completion_import_nothing_heavy(environment: dict[str, str]) -> None:
    heavy = {"pyspark", "pyarrow", "numpy", "sqlalchemy", "fsspec", "sqlglot", "datafusion"}
    for command, word in (
        (["scan"], "--snapshot-id"),
        (["maintain", "expire-snapshots"], "--plan"),
    ):
        code = (
            "import sys; from iceberg_pyspark.command_line.application import app\n"
            f"app([*{command}, '--help'], standalone_mode=False)\n"
            "print(*sys.modules, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert word in done.stdout
        assert heavy.isdisjoint(done.stderr.split())
    request = {**environment, "_ICEBERG_PY_COMPLETE": "complete_bash"}
    request.update(COMP_WORDS="iceberg-py prop", COMP_CWORD="1")
    done = subprocess.run(COMMAND, env=request, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["properties"]


def test_a_listing_of_files_imports_only_what_it_needs(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    table = ice.load_catalog("c", type="hadoop", warehouse=str(tmp_path)).create_table(
        "t", pa.schema([("id", pa.int64())])
    )
    table.append(pa.table({"id": [1, 2]}))
    code = (
        "import atexit, sys; from iceberg_pyspark.command_line.__main__ import main\n"
        f"sys.argv = ['iceberg-py', 'files', {table.location!r}]\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == "content"
    assert "data" in done.stdout.split()
    loaded = set(done.stderr.split())
    assert "pyarrow" in loaded
    assert loaded.isdisjoint(
        {
            *(
                "pyspark",
                "pandas",
                "sqlalchemy",
                "fsspec",
                "sqlglot",
                "datafusion",
                "pyarrow.dataset",
            ),
            "iceberg_pyspark.table.health.health_report",
            "iceberg_pyspark.table.maintenance.table_maintenance",
            "iceberg_pyspark.table.verify.verification",
        }
    )


def test_a_process_of_the_command_may_still_use_pandas() -> None:
    pytest.importorskip("pandas")
    code = (
        "import sys; from iceberg_pyspark.command_line.__main__ import _without_python_types\n"
        "_without_python_types()\n"
        "import pyarrow as pa\n"
        "assert pa.array([1, None]).type == pa.int64() and 'pandas' not in sys.modules\n"
        "print(pa.table({'id': [1, 2]}).to_pandas()['id'].sum())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


def test_a_pipe_that_closes_early_and_an_absent_typer(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    creation = [*COMMAND, "create", "table", "db.t", "--schema", "id INT", "--warehouse", "w"]
    subprocess.run(creation, cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL)
    reading = f"{sys.executable} -m iceberg_pyspark.command_line list db --warehouse w"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {reading} | true"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    absent = "import sys; sys.modules['typer'] = None"
    run = "from iceberg_pyspark.command_line.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", f"{absent}\n{run}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the command line needs the package typer; pip install")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_ends_a_command_that_waits(environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = [*COMMAND, "list", "--property", "type=rest", "--uri", uri]
        with subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # shells let programs in the background ignore the signal, and their children too
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        ) as process:
            try:
                silent.settimeout(60)
                silent.accept()
                process.send_signal(signal.SIGINT)
                output, errors = process.communicate(timeout=60)
            finally:
                process.kill()
    assert process.returncode == 130
    assert output == ""
    assert "Traceback" not in errors


def test_a_spark_that_does_not_start_is_one_line(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("pyspark")
    without_java = {**environment, "JAVA_HOME": f"{tmp_path}/no-java"}
    done = subprocess.run(
        [*COMMAND, "sql", "--warehouse", str(tmp_path / "w"), "SELECT 1"],
        cwd=tmp_path,
        env=without_java,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: Spark does not start: ")
    assert "no-java" in done.stderr
    assert done.stderr.count("\n") == 1
