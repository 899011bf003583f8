"""Which metrics a column gets in its files' entries: the `write.metadata.metrics.*` properties.

The properties are Java's; the specification leaves the choice to the writer ("Data File Fields").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.properties import IntProperty
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import ListType, MapType, PrimitiveType, StructType, Type

DEFAULT_KEY = "write.metadata.metrics.default"
COLUMN_PREFIX = "write.metadata.metrics.column."
MAX_INFERRED_DEFAULTS = IntProperty("write.metadata.metrics.max-inferred-column-defaults", 100, 0)

_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """`none`, `counts`, `full`, or `truncate` with the length of text and binary bounds."""

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
DEFAULT = MetricsMode("truncate", 16)


def parse_metrics_mode(text: str, key: str) -> MetricsMode:
    """Parse a mode; the error names the property.

    >>> parse_metrics_mode("truncate(4)", "write.metadata.metrics.default")
    MetricsMode(kind='truncate', length=4)
    """
    mode = text.strip().lower()
    if m := _TRUNCATE.fullmatch(mode):
        if int(m[1]):
            return MetricsMode("truncate", int(m[1]))
    elif mode in ("none", "counts", "full"):
        return MetricsMode(mode)  # type: ignore[arg-type]
    raise InvalidRequestError(
        f"table property {key}={text}: a metrics mode is none, counts, truncate(<length>) or full"
    )


def metrics_modes(schema: Schema, properties: Mapping[str, str]) -> Mapping[int, MetricsMode]:
    """The mode of every primitive column; what is inside a list or map has sizes at most.

    Where no default is set, only the first columns get one: those of a struct before what is
    nested in it.
    """
    columns = list(_columns_outer_first(schema.as_struct))
    if (text := properties.get(DEFAULT_KEY)) is not None:
        default = parse_metrics_mode(text, DEFAULT_KEY)
        modes = dict.fromkeys(columns, default)
    else:
        limit = MAX_INFERRED_DEFAULTS.of(properties)
        modes = {c: DEFAULT if i < limit else NONE for i, c in enumerate(columns)}
    for key, text in properties.items():
        if key.startswith(COLUMN_PREFIX):
            mode = parse_metrics_mode(text, key)
            field_id = schema.id_by_name.get(key.removeprefix(COLUMN_PREFIX))
            # a property may outlive its column
            if field_id in modes:
                modes[field_id] = mode
    return modes


def _columns_outer_first(type_: Type) -> Iterator[int]:
    match type_:
        case StructType(fields=fields):
            children = fields
        case ListType():
            children = (type_.element,)
        case MapType():
            children = (type_.key, type_.value)
        case _:
            return
    yield from (f.field_id for f in children if isinstance(f.type, PrimitiveType))
    for f in children:
        yield from _columns_outer_first(f.type)
