"""Settings of the test suite; each folder has its fixtures in its conftest."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.amounts import WORK

# Else each process that tests start compiles the package anew, which takes a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# pytest shows the compared values of a failed assertion only in modules that it rewrites
pytest.register_assert_rewrite("tests.support", "tests.faults.matrix")

# No deadline: timing means nothing on a busy machine. Where CI is set, the examples are always the
# same. Tests that need more or fewer examples take multiples of their number.
settings.register_profile(
    "tests",
    settings.get_profile("ci" if os.environ.get("CI") else "default"),
    max_examples=10 * WORK,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
