"""Java and PyIceberg read tables after interrupted commits.

The fault matrix (tests/faults) interrupts at every call; here other readers check a few points of
each operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.faults.matrix import Lake
from tests.faults.test_fault_matrix import CASES, base, base_and_another
from tests.support.fault_points import (
    ERROR_KINDS,
    FaultPoint,
    FaultyFileIO,
    fail_databases_and_clocks,
)
from tests.support.hooked_storage import Moment
from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import assert_all_read
from tests.support.parameters import cases
from tests.support.readings import catalog_properties, our_table

OPERATIONS = (
    *("append", "overwrite", "delete-rows", "update-rows", "rewrite-rows", "compact"),
    *("transaction", "cherry-pick"),
)
AT = (0.35, 0.7, 0.95)
"""The positions of the failing call, as fractions of all calls."""


@dataclass
class OracleLake(Lake):
    """A lake in one of the oracle's catalogs, with a separate table for each attempt."""

    oracle: Oracle | None = None
    attempt: str = ""

    def identifier_of(self, name: str) -> TableIdentifier:
        return TableIdentifier(namespace=("stopped",), name=f"{self.attempt}_{name}")

    def open(self) -> tuple[Catalog, FileIO]:
        assert self.oracle is not None
        io = FaultyFileIO(LocalFileIO(), self.faults)
        properties = catalog_properties(self.oracle, self.kind)
        make = FilesystemCatalog if self.kind == "java_hadoop" else SqlCatalog
        return make(self.kind, properties, io=io), io


@pytest.fixture
def faults() -> Iterator[FaultPoint]:
    point = FaultPoint()
    with pytest.MonkeyPatch.context() as patch:
        fail_databases_and_clocks(patch, point)
        yield point


ALWAYS = [("delete-rows", "java_hadoop"), ("transaction", "java_sql")]


@cases(
    ("operation", "kind"),
    fast=ALWAYS,
    nightly=[c for c in product(OPERATIONS, ["java_hadoop", "java_sql"]) if c not in ALWAYS],
)
def test_others_read_what_a_stopped_commit_leaves(
    java: JavaTables, faults: FaultPoint, kind: str, operation: str, tmp_path: Path
) -> None:
    oracle = java.oracle
    lake = OracleLake(kind, tmp_path, faults, oracle=oracle)
    catalog, _ = lake.open()
    if not catalog.namespace_exists(("stopped",)):
        catalog.create_namespace(("stopped",))
    case = CASES[operation]
    prepare = base_and_another if operation == "cherry-pick" else base
    calls = 0
    for number, share in enumerate((None, *AT)):
        lake.attempt = f"{operation.replace('-', '_')}_{number}"
        prepare(lake)
        run = case.begin(lake)
        at = None if share is None else round(share * calls)
        moment: Moment = "after" if number % 2 else "before"
        with faults.armed(at, moment, ERROR_KINDS[number % len(ERROR_KINDS)]):
            try:
                run()
            except (Exception, KeyboardInterrupt):  # noqa: BLE001 - the matrix judges them
                assert share is not None
        calls = calls or faults.calls
        name = f"{kind}.stopped.{lake.identifier.name}"
        assert_all_read(java, name, our_table(oracle, name).scan().to_arrow())
