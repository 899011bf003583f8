"""The names of the top package, and the findings of a type checker for programs that use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import iceberg_pyspark as ice

ROOT = Path(__file__).parents[2]

PROGRAM = """
from pyspark.sql import SparkSession

import iceberg_pyspark as ice
from iceberg_pyspark.errors import CommitConflictError


def rows_of(name: str) -> int:
    table: ice.Table = ice.load_table(name, catalog="local")
    snapshot: ice.Snapshot | None = table.current_snapshot
    schema: ice.Schema = table.schema
    names: list[str] = [f.name for f in schema.fields]
    table.update_schema().add_column("c", "int").commit()
    table.manage_snapshots().create_tag("t").commit()
    with table.transaction() as transaction:
        transaction.update_properties().set({"k": "v"}).commit()
    if snapshot is None or not names:
        return 0
    selector = ice.SnapshotSelector(snapshot_id=snapshot.snapshot_id)
    return table.scan(filter="id > 5", columns=["id"], selector=selector).count()


def create(catalog: ice.TableCatalog) -> ice.Table:
    return catalog.create_table("db.t", schema="id BIGINT", partitioned_by=["bucket(8, id)"])


def change(spark: SparkSession) -> int:
    session: ice.IcebergSession = ice.install(spark)
    spark.dataSource.register(ice.IcebergDataSource)
    table: ice.SparkTable = session.table("lake.db.t")
    try:
        changed = table.delete("id < 10")
        merge = table.merge_into(table.to_df(), "t.id = s.id").whenMatched().updateAll().merge()
    except CommitConflictError as error:
        raise RuntimeError("again") from error
    except ice.IcebergError:
        return 0
    return changed.deleted + merge.updated


create(ice.load_catalog("local", type="sql", uri="sqlite:///catalog.db", warehouse="w"))
"""


def check(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run `mypy --strict` on a user's program with the package installed.

    Errors inside installed packages do not concern users, so errors in this checkout are silenced
    too.
    """
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    cache = os.environ.get("MYPY_CACHE_DIR", str(ROOT / ".mypy_cache"))
    return subprocess.run(
        [*command, "--config-file=", f"--cache-dir={cache}", str(file)],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_exported_name_is_there() -> None:
    assert sorted(ice.__all__) == ice.__all__
    pytest.importorskip("pyspark")
    for name in ice.__all__:
        assert getattr(ice, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ice.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_users_program_passes_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    pytest.importorskip("pyspark")
    done = check(tmp_path, PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_user_writes_wrong_is_found(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    wrong = "import iceberg_pyspark as ice\n\nice.load_tabel('a')\nice.load_table(1).schema.x\n"
    done = check(tmp_path, wrong)
    assert 'Module has no attribute "load_tabel"' in done.stdout
    assert 'has incompatible type "int"; expected "str"' in done.stdout
    assert '"Schema" has no attribute "x"' in done.stdout
