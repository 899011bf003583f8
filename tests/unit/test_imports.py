"""The modules that importing the package loads, and the imports among its parts."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark
from tests.support.parameters import cases

PACKAGE = Path(iceberg_pyspark.__file__).parent
TESTS = Path(__file__).parents[1]


TRAVELS = (
    "spark.native_read.native_scan",
    "spark.data_source.metadata_tables",
    "spark.write.file_job",
    "spark.data_source.writer",
    "table.row_level.change_task",
)


def modules_after(statement: str) -> set[str]:
    """Return the modules loaded in a new process after a statement."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules loaded in a new process after a statement."""
    return {name.split(".")[0] for name in modules_after(statement)}


def test_the_package_does_not_import_pyspark() -> None:
    assert {"pyspark", "py4j"}.isdisjoint(loaded_after("import iceberg_pyspark"))


def test_the_package_imports_nothing_that_it_does_not_need_yet() -> None:
    loaded = loaded_after("import iceberg_pyspark")
    assert loaded.isdisjoint(
        {"pyarrow", "numpy", "fastavro", "sqlglot", "sqlalchemy", "fsspec", "asyncio", "typer"}
    )
    loaded = loaded_after("import iceberg_pyspark\niceberg_pyspark.load_table")
    assert loaded.isdisjoint({"sqlglot", "sqlalchemy", "fsspec", "pandas", "datafusion"})


def test_a_module_that_imports_pyspark_can_be_the_first_that_does() -> None:
    """Importing pyspark calls a hook of this package."""
    assert "pyspark" in loaded_after("import iceberg_pyspark.spark.bridge.jvm_errors")


def test_install_imports_nothing_that_most_sessions_do_not_need() -> None:
    modules = modules_after("from iceberg_pyspark.spark import installation, session")
    foreign = {"pandas", "sqlglot", "sqlalchemy", "fsspec", "httpx", "datafusion"}
    assert modules.isdisjoint(foreign)
    rarely_needed = (
        "spark.procedures",
        "spark.portable",
        "table.maintenance",
        "table.health",
        "table.verify",
        "catalogs.glue.glue_catalog",
        "catalogs.hive",
        "catalogs.rest",
        "catalogs.sql",
    )
    assert modules.isdisjoint(f"{PACKAGE.name}.{part}" for part in rarely_needed)
    # each takes a millisecond of every process
    assert len([m for m in modules if m.startswith(f"{PACKAGE.name}.")]) <= 365


def modules_of_command(*arguments: str) -> set[str]:
    """Return the modules that a new process has after one command."""
    return modules_after(
        "import contextlib, io, sys\n"
        "from iceberg_pyspark.command_line.__main__ import main\n"
        f"sys.argv = ['iceberg-py', *{arguments}]\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()"
    )


def test_help_imports_what_it_prints() -> None:
    modules = modules_of_command("--help")
    foreign = {
        *("rich", "pydantic", "pyarrow", "numpy", "yaml", "sqlalchemy", "pyspark", "asyncio"),
        *("email", "html", "importlib.metadata", "concurrent.futures"),
    }
    assert modules.isdisjoint(foreign)
    assert "typer" in modules
    assert len([m for m in modules if m.startswith(f"{PACKAGE.name}.")]) <= 27


@pytest.mark.parametrize("command", ["files", "snapshots"])
def test_commands_import_what_they_need(command: str, tmp_path: Path) -> None:
    catalog = iceberg_pyspark.load_catalog("c", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id BIGINT").append(pa.table({"id": [1]}))
    modules = modules_of_command("--json", command, str(tmp_path / "db" / "t"))
    assert f"{PACKAGE.name}.table.metadata_tables.lookup" in modules
    foreign = {
        "rich",
        "pandas",
        "sqlglot",
        "sqlalchemy",
        "fsspec",
        "httpx",
        "datafusion",
        "pyspark",
        "dateutil",
        "pyarrow.parquet",
    }
    assert modules.isdisjoint(foreign)
    rarely_needed = (
        *("table.health", "table.verify", "table.maintenance.rewrites", "catalogs.rest"),
        *("table.change_feed", "table.row_level.row_operation", "table.commits.commit"),
        *("arrow.write", "arrow.read", "arrow.formats", "planning.scan_plan", "changes.apply"),
    )
    assert modules.isdisjoint(f"{PACKAGE.name}.{part}" for part in rarely_needed)
    assert len([m for m in modules if m.startswith(f"{PACKAGE.name}.")]) <= 153


@pytest.mark.parametrize("first", ["pyspark.java_gateway", "iceberg_pyspark"])
def test_python_imports_for_install_while_the_jvm_starts(first: str) -> None:
    both = f"import {first}\nimport iceberg_pyspark\nimport pyspark.java_gateway"
    assert f"{PACKAGE.name}.spark.session" not in modules_after(both)
    starts = "import sys\npyspark.java_gateway.Popen([sys.executable, '-c', '']).wait()"
    assert f"{PACKAGE.name}.spark.session" in modules_after(f"{both}\n{starts}")


def test_the_package_imports_where_pyspark_is_absent() -> None:
    absent = "import sys; sys.modules['pyspark'] = None; sys.modules['py4j'] = None"
    assert "iceberg_pyspark" in loaded_after(f"{absent}\nimport iceberg_pyspark")


@cases("modules", fast=[TRAVELS], nightly=[*(pytest.param((m,), id=m) for m in TRAVELS)])
def test_modules_on_executors_import_no_driver_package(modules: tuple[str, ...]) -> None:
    """Functions of these modules are pickled by name; executors may lack packages of the driver."""
    foreign = {"msgspec", "sqlglot", "datafusion", "sqlalchemy"}
    names = ", ".join(f"iceberg_pyspark.{module}" for module in modules)
    assert foreign.isdisjoint(loaded_after(f"import {names}"))


@pytest.mark.parametrize("part", ["spec", "expressions", "changes", "errors"])
def test_the_kernel_imports_without_arrow_or_avro(part: str) -> None:
    foreign = {"pyarrow", "numpy", "fastavro", "datafusion", "sqlalchemy", "fsspec", "pyspark"}
    assert foreign.isdisjoint(loaded_after(f"import iceberg_pyspark.{part}"))


def test_nothing_inside_imports_the_top_package() -> None:
    places = []
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if not re.search(rf"\b(import\s.*|from[\s\\]+){PACKAGE.name}\b(?!\.)", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == PACKAGE.name:
                names = [alias.name for alias in node.names if not is_module(alias.name)]
                places += [f"{file.relative_to(PACKAGE)}:{node.lineno}: {name}" for name in names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name == PACKAGE.name]
                places += [f"{file.relative_to(PACKAGE)}:{node.lineno}: {name}" for name in names]
    assert places == []


def test_files_that_texts_name_are_there() -> None:
    """Each file name is a path in the repository, in the package, or beside the naming file."""
    absent_files = set()
    for file in (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.java")):
        for name in re.findall(
            r"[`/ *(]((?:[a-z0-9_]+/)+[a-z0-9_]+\.py)\b", file.read_text("utf-8")
        ):
            places = (PACKAGE.parent, PACKAGE, PACKAGE / "spark", file.parent)
            if not any((place / name).is_file() for place in places):
                absent_files.add(f"{file.relative_to(PACKAGE)}: {name}")
        for name in re.findall(r"`([a-z0-9_]+\.py)`", file.read_text("utf-8")):
            if not any((place / name).is_file() for place in (PACKAGE, file.parent)):
                absent_files.add(f"{file.relative_to(PACKAGE)}: {name}")
    assert absent_files == set()


def is_module(name: str) -> bool:
    """Return whether the package has a module of this name, which may be imported from it."""
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def test_each_module_has_a_name_of_its_own() -> None:
    names = Counter(p.stem for p in PACKAGE.rglob("*.py") if not p.stem.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_programs_that_nightly_tests_run_import_what_there_is() -> None:
    """`make test` runs few of them, so nobody would notice a module that was renamed."""
    imported = re.compile(r"^ *from ((?:iceberg_pyspark|tests|jobs)[\w.]*) import (.+)$", re.M)
    missing = [
        f"{file}: {module} {name}"
        for file in sorted(TESTS.rglob("*.py"))
        for text in _long_texts(file)
        for module, names in imported.findall(text)
        for name in re.findall(r"(\w+)(?: as \w+)?(?:, |$)", names)
        if not _has(module, name)
    ]
    assert missing == []


def _long_texts(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            yield node.value


def _has(module: str, name: str) -> bool:
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True
