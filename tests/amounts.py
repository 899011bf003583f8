"""How much work tests do."""

from __future__ import annotations

import os

RUNS_MORE = bool(os.environ.get("ICEBERG_MORE"))
"""Whether tests do all of their work, as in `make test-more`, and not the part that suffices."""
