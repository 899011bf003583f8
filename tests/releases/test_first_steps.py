"""First steps on the older releases; the two installed releases run the whole test suite."""

from __future__ import annotations

import pytest

from iceberg_pyspark.spark.bridge.features import FEATURES
from tests.releases.__main__ import run_on, summary
from tests.releases.environments import EnvironmentUnavailableError
from tests.releases.releases import LACKING
from tests.services.server import absent

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("release", ["4.0.5", "4.1.0"])
def test_all_first_steps_give_the_right_rows(release: str) -> None:
    try:
        actual = run_on(release)
    except EnvironmentUnavailableError as e:
        absent(f"Spark {release}", str(e))
    assert actual["release"] == release
    assert actual["native"], actual["described"]
    lacking = {f.name for f in FEATURES if {*f.internals} & LACKING.get(release, set())}
    assert set(actual["missing"]) == lacking
    assert [why for why in actual["steps"].values() if why is not None] == [], summary(actual)
