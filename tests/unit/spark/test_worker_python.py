"""The Python of Spark's tasks, where it cannot run the package."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iceberg_pyspark.spark.bridge.plain_sessions import register_unless_found
from iceberg_pyspark.spark.data_source import worker_python
from iceberg_pyspark.spark.data_source.source import IcebergDataSource
from iceberg_pyspark.spark.data_source.worker_python import (
    prepare_worker_python,
    worker_python_problem,
)

OWN_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


class Session:
    """A session whose tasks run a program."""

    def __init__(self, program: str, master: str = "local[2]", files: Sequence[str] = ()) -> None:
        self.sparkContext = SimpleNamespace(
            master=master,
            pythonExec=program,
            _python_includes=[file for file in files if file.endswith(".zip")],
            _conf={"spark.submit.pyFiles": ",".join(files)},
        )


def problem_of(
    program: str | Path, master: str = "local[2]", files: Sequence[str] = ()
) -> str | None:
    session: Any = Session(str(program), master, files)
    return worker_python_problem(session)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Return a `python3` whose text a test writes."""
    program = tmp_path / "python3"
    program.touch(mode=0o755)
    return program


def test_the_python_of_the_driver_has_no_problem() -> None:
    assert problem_of(sys.executable) is None


def test_another_name_of_the_same_python_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `python3` and `python` of an environment; its Python in another folder is another one."""
    own, alias, copy = tmp_path / "bin" / "python", tmp_path / "bin" / "python3", tmp_path / "py"
    own.parent.mkdir()
    own.write_text('#!/bin/sh\necho "3.8 False"\n')
    own.chmod(0o755)
    alias.symlink_to(own)
    copy.symlink_to(own)
    monkeypatch.setattr(sys, "executable", str(own))
    assert problem_of(alias) is None
    assert problem_of(copy) is not None


def test_another_python_with_the_package_has_no_problem(python: Path) -> None:
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    assert problem_of(python) is None


def test_a_python_without_the_package_is_named(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python runs isolated: without the packages of the environment and without this folder
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    monkeypatch.setenv("PATH", str(python.parent), prepend=":")
    problem = problem_of("python3")
    assert problem is not None
    assert f"{python}, where iceberg-pyspark is not installed; " in problem
    assert f"or set the environment variable PYSPARK_PYTHON to {sys.executable}," in problem
    assert problem_of("python3", master="spark://host:7077") is None
    # tasks get the package by --py-files
    assert problem_of("python3", files=["package.zip"]) is None


def test_a_wheel_that_tasks_do_not_get_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    files = ["/files/other.whl", "/files/iceberg_pyspark-1.whl"]
    assert problem_of(sys.executable, files=files) is None
    imported = "/work/iceberg_pyspark-1.whl/iceberg_pyspark/spark/data_source/worker_python.py"
    monkeypatch.setattr(worker_python, "__file__", imported)
    problem = problem_of(sys.executable, master="spark://host:7077", files=files)
    assert problem is not None
    assert "iceberg_pyspark-1.whl in --py-files; rename it to .zip" in problem
    assert problem_of(sys.executable) is None


def test_a_python_of_another_version_is_named(python: Path) -> None:
    python.write_text('#!/bin/sh\necho "a greeting"\necho "3.8 False"\n')
    problem = problem_of(python)
    assert problem is not None
    assert f"which is Python 3.8, and the driver is Python {OWN_VERSION};" in problem


def test_a_missing_python_is_named(tmp_path: Path) -> None:
    problem = problem_of(tmp_path / "python9")
    assert problem is not None
    assert "python9', which is not on PATH; activate" in problem


@pytest.mark.parametrize("text", ["exit 3", "echo ok"])
def test_a_program_that_answers_nothing_is_not_judged(python: Path, text: str) -> None:
    python.write_text(f"#!/bin/sh\n{text}\n")
    assert problem_of(python) is None


def test_a_session_of_connect_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connected:
        @property
        def sparkContext(self) -> Any:  # noqa: N802 - Spark's name
            raise AttributeError("JVM_ATTRIBUTE_NOT_SUPPORTED")

    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "jupyter")
    session: Any = Connected()
    assert worker_python_problem(session) is None
    prepare_worker_python(session)


@pytest.mark.parametrize(
    ("program", "registered"),
    [
        (None, []),
        ("/opt/bin/python3.12", []),
        ("jupyter", [IcebergDataSource]),
        ("/a/ipython", [IcebergDataSource]),
        ("python3 with files", [IcebergDataSource]),
    ],
)
def test_the_data_source_is_registered_where_spark_may_not_find_it(
    monkeypatch: pytest.MonkeyPatch, program: str | None, registered: list[type]
) -> None:
    files = ["package.zip"] if program == "python3 with files" else []
    if program is None:
        monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    else:
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", program)
    sources: list[type] = []
    monkeypatch.setattr(
        worker_python, "register_unless_found", lambda _, source: sources.append(source)
    )
    session: Any = Session(sys.executable, files=files)
    prepare_worker_python(session)
    assert sources == registered


def test_session_that_cannot_register_the_format_logs_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session: Any = Session(sys.executable)
    register_unless_found(session, IcebergDataSource)
    assert "does not find the format iceberg-py" in caplog.text


def test_a_problem_is_logged_once(
    python: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    worker_python._warn_once.cache_clear()
    python.write_text('#!/bin/sh\necho "3.8 False"\n')
    session: Any = Session(str(python))
    with caplog.at_level(logging.WARNING):
        prepare_worker_python(session)
        prepare_worker_python(session)
    assert [str(python) in record.getMessage() for record in caplog.records] == [True]
