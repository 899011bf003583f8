"""Chooses the metrics of each column by the properties `write.metadata.metrics.*`.

The properties are Java's; the specification leaves the choice to the writer ("Data File Fields").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from iceberg_pyspark.spec.properties import METRICS_COLUMN, METRICS_DEFAULT, METRICS_MAX_INFERRED
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import PrimitiveType, Type, children_of

_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """A mode: `none`, `counts`, `full`, or `truncate` with the length of text and binary bounds."""

    kind: Literal["none", "counts", "truncate", "full"]
    length: int = 0

    @property
    def counts(self) -> bool:
        """Whether values, nulls and NaNs are counted."""
        return self.kind != "none"

    @property
    def bounds(self) -> bool:
        """Whether there are lower and upper bounds."""
        return self.kind in ("truncate", "full")


NONE = MetricsMode("none")
COUNTS = MetricsMode("counts")
DEFAULT = MetricsMode("truncate", 16)


def metrics_mode(text: str, otherwise: MetricsMode) -> MetricsMode:
    """Return the mode that a property names, or `otherwise` for an invalid value, as in Java.

    >>> metrics_mode("truncate(4)", NONE)
    MetricsMode(kind='truncate', length=4)
    """
    if METRICS_DEFAULT.problem(text) is not None:
        return otherwise
    mode = text.lower()
    if m := _TRUNCATE.fullmatch(mode):
        return MetricsMode("truncate", int(m[1]))
    return MetricsMode(mode)  # type: ignore[arg-type]


def metrics_modes(schema: Schema, properties: Mapping[str, str]) -> Mapping[int, MetricsMode]:
    """Return the mode of every primitive column; columns in lists and maps have sizes at most.

    Without a default mode in the properties, only the first columns have metrics; the fields of a
    struct precede nested fields.
    """
    columns = list(_columns_outer_first(schema.as_struct))
    if (text := properties.get(METRICS_DEFAULT.name)) is not None:
        modes = dict.fromkeys(columns, metrics_mode(text, DEFAULT))
    else:
        limit = METRICS_MAX_INFERRED.of(properties)
        modes = {c: DEFAULT if i < limit else NONE for i, c in enumerate(columns)}
    for key, text in properties.items():
        if key.startswith(METRICS_COLUMN):
            field_id = schema.id_by_name.get(key.removeprefix(METRICS_COLUMN))
            # a property may outlive its column
            if field_id in modes:
                modes[field_id] = metrics_mode(text, modes[field_id])
    return modes


def _columns_outer_first(type_: Type) -> Iterator[int]:
    children = children_of(type_)
    yield from (f.field_id for f in children if isinstance(f.type, PrimitiveType))
    for f in children:
        yield from _columns_outer_first(f.type)
