"""How much work tests do."""

from __future__ import annotations

import os

WORK = int(os.environ.get("ICEBERG_WORK", "1"))
"""A factor of how much tests do where more may find more: examples of Hypothesis, mutated inputs,
random sequences, commits of many writers. `make nightly` sets 10."""

FULL_WORK = WORK > 1
"""Whether tests do all of what they can: every point of a fault, every statement of a list."""
