"""Operations on catalogs in a Hive metastore, stopped at calls of the metastore.

These are cases of the fault matrix (tests/faults), which `make nightly` tries with all others. They
are here for `make test`, because the tests of this folder share a metastore.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.matrix import Lake, prepare_lake, try_all_points
from tests.faults.test_fault_matrix import CASES, base
from tests.support.catalog_contract import new_name
from tests.support.fault_points import FaultPoint, fail_metastores

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(
    ("kind", "name"), [("hive", "properties"), ("hive-without-locks", "append")]
)
def test_an_operation_stopped_at_the_metastore(
    kind: str, name: str, hive_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = FaultPoint(["metastore"])
    fail_metastores(monkeypatch, faults)
    lake = Lake(kind, tmp_path, faults, uri=hive_uri, database=new_name("db"))
    case = CASES[name]
    prepare_lake(lake, case.prepare or base)
    try_all_points(lake, name, case)
