"""Every block of Python and SQL in README.md and docs/ runs; each page has one session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from tests.spark.conftest import Configured
from tests.support.documentation import PAGES, Block, blocks_of, name_of

RUN = ("python", "sql")
WITH_CODE = [p for p in PAGES if any(b.language in RUN for b in blocks_of(p))]


@pytest.fixture
def folder(
    spark: SparkSession,
    configured: Configured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """Yield a folder for everything that a page writes: `/warehouse`, the working folder and the
    default catalog.

    Spark's Python workers have another working folder, so the default catalog is configured for
    them.
    """
    monkeypatch.chdir(tmp_path)
    settings = dict(spark.conf.getAll)
    (tmp_path / "warehouse").mkdir()
    configuration = configured.home / ".pyiceberg.yaml"
    configuration.write_text(f"catalog:\n  default:\n    warehouse: {tmp_path}/default\n")
    yield tmp_path
    configuration.unlink()
    install(spark).uninstall()
    for key in dict(spark.conf.getAll).keys() - settings.keys():
        spark.conf.unset(key)
    for view in spark.catalog.listTables():
        spark.catalog.dropTempView(view.name)


def run(spark: SparkSession, block: Block, scope: dict[str, object], folder: Path) -> None:
    code = block.code.replace("/warehouse", f"{folder}/warehouse")
    if block.language == "python":
        exec(compile("\n" * (block.line - 1) + code, name_of(block.page), "exec"), scope)
        return
    for statement in filter(str.strip, code.split(";\n")):
        spark.sql(statement).collect()


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs(
    spark: SparkSession, folder: Path, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    existed = os.path.exists("/warehouse")
    scope: dict[str, object] = {"spark": spark, "__name__": "page"}
    for block in blocks_of(page):
        if block.language in RUN:
            run(spark, block, scope, folder)
    assert os.path.exists("/warehouse") == existed
    assert "Traceback" not in capsys.readouterr().err


def test_there_is_code_to_run() -> None:
    """Code fences written in another style would run nothing, and no other test would notice."""
    blocks = [b for page in WITH_CODE for b in blocks_of(page) if b.language in RUN]
    assert len(WITH_CODE) > 8
    assert len(blocks) > 40
