"""A wheel built from the checkout and installed elsewhere works as README.md promises.

The dependencies come from the environment of the tests; only the package comes from the wheel.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pyspark
import pytest

from tests.support.documentation import PAGES, README, ROOT, blocks_of
from tests.support.spark_sessions import session_conf, spark_environment

PACKAGES = ("iceberg_pyspark", "pyspark_iceberg_py")
MODULES = {"dbt_iceberg_pyspark.py", "iceberg_pyspark_auto.pth"}


def run(command: Sequence[str | Path], folder: Path, python: Path | None = None) -> str:
    """Run a program in a folder, without the checkout on its path; return its stdout.

    `python` is Spark's Python, by default the program.
    """
    environment = {k: v for k, v in spark_environment().items() if k != "PYTHONPATH"}
    environment |= {
        name: str(python or command[0]) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    }
    settings = [f"--conf={key}={value}" for key, value in session_conf(folder).items()]
    environment["PYSPARK_SUBMIT_ARGS"] = shlex.join([*settings, "pyspark-shell"])
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path, files: set[str]) -> Message:
    (name,) = (file for file in files if file.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        return HeaderParser().parsestr(archive.read(name).decode())


def test_its_description_has_no_link_that_an_index_cannot_follow(metadata: Message) -> None:
    description = metadata.get_payload()
    assert isinstance(description, str)
    assert "## Quick start" in description
    assert "see Connect and clusters" in description
    assert not re.search(r"\]\((?!https?://)", description)


def test_wheel_has_every_file_of_the_packages_and_no_other(files: set[str]) -> None:
    source = {
        file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {file for file in files if ".dist-info/" not in file} == source | MODULES
    assert "iceberg_pyspark/py.typed" in source
    assert sum(file.endswith(".java") for file in source) > 50
    assert any(file.endswith(".dist-info/licenses/LICENSE") for file in files)


def test_wheel_has_the_documented_extras(metadata: Message) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    documented_extras = {
        e for extras in re.findall(r"iceberg-pyspark\[([\w,]+)\]", text) for e in extras.split(",")
    }
    assert "spark" in documented_extras
    assert documented_extras <= set(metadata.get_all("Provides-Extra", []))


def fresh_environment(folder: Path) -> tuple[Path, Path]:
    """Make an environment that lacks only this package; return its Python and its packages."""
    python = folder / "fresh" / "bin" / "python"
    run([sys.executable, "-m", "venv", "--without-pip", folder / "fresh"], folder)
    # Python searches a path from a .pth file after the wheel, and ignores .pth files in that path,
    # so the tests' editable install of the package has no effect.
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = folder / "fresh" / "lib" / version / "site-packages"
    pth = packages / "dependencies.pth"
    pth.write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return python, packages


@pytest.mark.nightly
def test_installed_wheel_runs_the_quick_start(wheel: Path, tmp_path: Path) -> None:
    python, packages = fresh_environment(tmp_path)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], tmp_path)
    quick_start, portable = (b for b in blocks_of(README) if b.language == "python")
    program = tmp_path / "quick_start.py"
    program.write_text(
        f"{quick_start.code}\n{portable.code.replace('/warehouse', f'{tmp_path}/files')}\n"
        "print([tuple(row) for row in spark.table('lake.db.events').sort('id').collect()])\n"
        "print('installed in', ice.__path__)\n"
        "numbers = spark.sparkContext.parallelize([0], 1)\n"
        "print('workers import', numbers.map(lambda _: __import__('pyspark').__file__).first())\n",
        encoding="utf-8",
    )
    shown = run([python, program], tmp_path)
    assert f"installed in ['{packages}/iceberg_pyspark']" in shown
    assert "(1, datetime.date(2026, 1, 31), 'a'), (2, None, 'new')]" in shown
    assert "0  new" in shown
    assert f"workers import {pyspark.__file__}" in shown, "and no archive"


@pytest.mark.nightly
def test_a_job_that_gets_it_as_a_zip_file_is_native(wheel: Path, tmp_path: Path) -> None:
    """As by `--py-files`: neither the driver's Python nor that of the tasks has the package."""
    python, _ = fresh_environment(tmp_path)
    archive = shutil.copy(wheel, tmp_path / "iceberg_pyspark.zip")
    program = tmp_path / "job.py"
    program.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[2]').getOrCreate()\n"
        "spark.sparkContext.addPyFile(sys.argv[1])\n"
        "import iceberg_pyspark as ice\n"
        "print(ice.install(spark).describe())\n"
        "spark.range(5).write.format('iceberg-py').mode('append').save(sys.argv[2])\n"
        "read = spark.read.format('iceberg-py')\n"
        "print(read.load(sys.argv[2]).count(), 'rows')\n"
        "print(read.option('native', 'false').load(sys.argv[2]).count(), 'rows by Python')\n"
        "print('imported from', ice.__path__)\n",
        encoding="utf-8",
    )
    shown = run([python, program, archive, tmp_path / "table"], tmp_path)
    assert re.search(r"^native scans +native$", shown, re.MULTILINE), shown
    assert "\n5 rows\n5 rows by Python\n" in shown
    assert "iceberg_pyspark.zip/iceberg_pyspark']" in shown


@pytest.mark.nightly
def test_a_submitted_job_gets_it_by_py_files(wheel: Path, tmp_path: Path) -> None:
    python, _ = fresh_environment(tmp_path)
    archive = shutil.copy(wheel, tmp_path / "iceberg_pyspark.zip")
    program = tmp_path / "job.py"
    program.write_text(
        "import sys\n"
        "import iceberg_pyspark.auto\n"
        "from pyspark.sql import SparkSession\n"
        "lake = 'spark.sql.catalog.lake'\n"
        "settings = {lake: 'iceberg_pyspark', f'{lake}.warehouse': sys.argv[1]}\n"
        "spark = SparkSession.builder.config(map=settings).getOrCreate()\n"
        "spark.sql('CREATE NAMESPACE lake.db')\n"
        "spark.sql('CREATE TABLE lake.db.t AS SELECT id FROM range(0, 10, 1, 2)')\n"
        "spark.sql('DELETE FROM lake.db.t WHERE id % 2 = 0')\n"
        "print([row.id for row in spark.table('lake.db.t').sort('id').collect()])\n"
        "in_tasks = spark.range(1).rdd.map(lambda row: __import__('iceberg_pyspark').__file__)\n"
        "print('tasks import', in_tasks.first())\n",
        encoding="utf-8",
    )
    submit = Path(sysconfig.get_path("purelib"), "pyspark", "bin", "spark-submit")
    options = ("--master", "local[2]", "--py-files", archive)
    shown = run([submit, *options, program, tmp_path / "lake"], tmp_path, python)
    assert "[1, 3, 5, 7, 9]" in shown
    assert re.search(r"^tasks import .*iceberg_pyspark\.zip/iceberg_pyspark/", shown, re.MULTILINE)
