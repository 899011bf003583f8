"""Defines a health report and its output formats."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from iceberg_pyspark.table.health.figures import HealthFigures
from iceberg_pyspark.table.health.report_text import html_of, text_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableHealth(HealthFigures):
    """The health of a table; it prints as text, and as tables in a notebook."""

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by field name, in JSON types."""
        return asdict(self)

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)
