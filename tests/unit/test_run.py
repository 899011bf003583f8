"""`python -m iceberg_pyspark.run`, the environment variable and dbt's module, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iceberg_pyspark.auto import VARIABLE
from tests.support.documentation import ROOT

PROGRAM = f"""
import os, sys
import helper
print(sys.argv[1:], os.path.basename(sys.argv[0]), __name__, os.environ["{VARIABLE}"])
print("iceberg_pyspark.auto" in sys.modules, "pyspark" in sys.modules)
sys.exit(len(sys.argv))
"""


def python(
    *arguments: str | Path, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k != VARIABLE}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    for place in (tmp_path, tmp_path / "scripts"):
        (place / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "scripts" / "helper.py").touch()
    return tmp_path


def test_run_runs_a_file_with_its_arguments_and_exit_code(folder: Path) -> None:
    done = python("-m", "iceberg_pyspark.run", "scripts/program.py", "-m", "a b", folder=folder)
    assert done.stdout == "['-m', 'a b'] program.py __main__ 1\nTrue False\n", done.stderr
    assert done.returncode == 3


def test_run_runs_a_module(folder: Path) -> None:
    (folder / "helper.py").touch()
    done = python("-m", "iceberg_pyspark.run", "-m", "program", "--x", folder=folder)
    assert done.stdout == "['--x'] program.py __main__ 1\nTrue False\n", done.stderr
    assert done.returncode == 2


def test_run_runs_a_console_script_of_the_environment(tmp_path: Path) -> None:
    run = ("-m", "iceberg_pyspark.run")
    done = python(*run, "pytest", "--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"pytest {pytest.__version__}\n"), done.stderr
    assert python(*run, "pytest", "absent", folder=tmp_path).returncode == 4


@pytest.mark.parametrize("arguments", [(), ("absent",), ("-m",), (".",)])
def test_without_a_program_it_says_how_it_is_used(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = python("-m", "iceberg_pyspark.run", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "usage: python -m iceberg_pyspark.run" in done.stderr


@pytest.mark.parametrize(("value", "is_on"), [("1", True), ("0", False), ("", False)])
def test_the_file_of_the_wheel_reads_the_environment_variable(
    value: str, is_on: bool, tmp_path: Path
) -> None:
    (tmp_path / "auto.pth").write_bytes((ROOT / "iceberg_pyspark_auto.pth").read_bytes())
    code = f"import site, sys; site.addsitedir({str(tmp_path)!r}); print(sorted(sys.modules))"
    done = python(
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.append({str(ROOT)!r}); {code}",
        folder=tmp_path,
        **{VARIABLE: value},
    )
    assert ("'iceberg_pyspark.auto'" in done.stdout) is is_on, done.stderr
    assert "'pyspark'" not in done.stdout
    assert done.stderr == ""


def test_the_file_of_the_wheel_leaves_out_archives_beside_the_modules_of_pyspark(
    tmp_path: Path,
) -> None:
    """As on the path of Spark's Python workers, whose archive has no compiled modules."""
    (tmp_path / "auto.pth").write_bytes((ROOT / "iceberg_pyspark_auto.pth").read_bytes())
    needless = ["pyspark/python/lib/pyspark.zip", "pyspark/jars/spark-core_2.13-4.1.1.jar"]
    others = [
        *(f"{tmp_path}/other/{archive}" for archive in needless),
        f"{tmp_path}/pyspark/python/lib/py4j-0.10.9.9-src.zip",
        f"{tmp_path}/pyspark/jars/of_a_user.jar",
        f"{tmp_path}/pyspark.zip",
        "pyspark.zip",
    ]
    path = [*(f"{tmp_path}/{archive}" for archive in needless), *others]
    code = (
        f"import site, sys; sys.path[:] = {path!r}; site.addsitedir({str(tmp_path)!r}); "
        "print(sys.path)"
    )
    done = python("-I", "-S", "-c", code, folder=tmp_path)
    assert done.stdout.strip() == str([*others, str(tmp_path)]), done.stderr
    assert done.stderr == ""


def test_dbt_finds_its_module_and_imports_no_spark(tmp_path: Path) -> None:
    """What dbt-core does at its start."""
    code = (
        "import importlib, pkgutil, sys\n"
        "names = [m.name for m in pkgutil.iter_modules() if m.name.startswith('dbt_')]\n"
        "print([importlib.import_module(name).plugins for name in names])\n"
        "print('iceberg_pyspark.auto' in sys.modules, 'pyspark' in sys.modules)\n"
    )
    assert python("-c", code, folder=tmp_path).stdout == "[[]]\nTrue False\n"
