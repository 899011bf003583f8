"""Table properties of single Parquet columns: Bloom filters, statistics, dictionary encoding.

The properties are Java's, `write.parquet.<setting>.column.<name>`. They use the column names of the
table, which differ from Parquet's paths in lists and maps. A property for a dropped column has no
effect.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from iceberg_pyspark.arrow.file_schema import stored_schema
from iceberg_pyspark.spec.properties import (
    PARQUET_BLOOM_ENABLED,
    PARQUET_BLOOM_FPP,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_BLOOM_NDV,
    PARQUET_DICTIONARY,
    PARQUET_STATISTICS,
)
from iceberg_pyspark.spec.property_types import (
    LONG_MAX,
    BoolProperty,
    FractionProperty,
    IntProperty,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BooleanType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
)

_WRITER_PARAMETERS = frozenset(inspect.signature(pq.ParquetWriter.__init__).parameters)
WRITES_BLOOM_FILTERS = "bloom_filter_options" in _WRITER_PARAMETERS
"""Whether this pyarrow writes Bloom filters; files without Bloom filters are valid."""
LIMITS_PAGE_ROWS = "max_rows_per_page" in _WRITER_PARAMETERS


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The size of a Bloom filter: number of distinct values, and rate of false positives."""

    ndv: int
    fpp: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """The settings of columns by Parquet path; `paths` are all leaf columns, in file order."""

    paths: tuple[str, ...]
    bloom_filters: Mapping[str, BloomFilter]
    without_statistics: frozenset[str]
    without_dictionary: frozenset[str]

    def writer_arguments(self) -> dict[str, Any]:
        """Return the settings as keyword arguments of `pyarrow.parquet.ParquetWriter`."""
        options: dict[str, Any] = {}
        if self.without_statistics:
            options["write_statistics"] = [
                p for p in self.paths if p not in self.without_statistics
            ]
        if self.without_dictionary:
            options["use_dictionary"] = [p for p in self.paths if p not in self.without_dictionary]
        if self.bloom_filters and WRITES_BLOOM_FILTERS:
            options["bloom_filter_options"] = {
                path: {"ndv": b.ndv, "fpp": b.fpp} for path, b in self.bloom_filters.items()
            }
        return options


def sets_columns_apart(properties: Mapping[str, str]) -> bool:
    """Return whether any column has its own settings."""
    return any(
        k.startswith((PARQUET_BLOOM_ENABLED, PARQUET_STATISTICS, PARQUET_DICTIONARY))
        for k in properties
    )


def column_options(schema: Schema, properties: Mapping[str, str]) -> ColumnOptions:
    """Return the settings of a schema's columns; `InvalidRequestError` names a wrong property."""
    leaves = dict(_leaves(stored_schema(schema).as_struct, ""))
    path_by_id = {f.field_id: path for path, f in leaves.items()}

    def exceptions(prefix: str, *, default: bool) -> Iterator[tuple[str, str]]:
        """Yield name and path of the columns whose setting is not the default."""
        for key in properties:
            if not key.startswith(prefix):
                continue
            name = key.removeprefix(prefix)
            path = path_by_id.get(schema.id_by_name.get(name, -1))
            if BoolProperty(key, default).of(properties) != default and path is not None:
                yield name, path

    return ColumnOptions(
        paths=tuple(leaves),
        bloom_filters={
            path: _bloom_filter(properties, name)
            for name, path in exceptions(PARQUET_BLOOM_ENABLED, default=False)
            # a Bloom filter of two values is useless, and Arrow refuses it
            if not isinstance(leaves[path].type, BooleanType)
        },
        without_statistics=frozenset(
            path for _, path in exceptions(PARQUET_STATISTICS, default=True)
        ),
        without_dictionary=frozenset(
            path for _, path in exceptions(PARQUET_DICTIONARY, default=True)
        ),
    )


def _bloom_filter(properties: Mapping[str, str], name: str) -> BloomFilter:
    fpp = FractionProperty(f"{PARQUET_BLOOM_FPP}{name}", 0.01).of(properties)
    most = _values_in(PARQUET_BLOOM_MAX_BYTES.of(properties), fpp)
    ndv = IntProperty(f"{PARQUET_BLOOM_NDV}{name}", most, 1, LONG_MAX).of(properties)
    return BloomFilter(min(ndv, most), fpp)


def _values_in(size: int, fpp: float) -> int:
    """Return the number of distinct values for a filter of that size; sizes are powers of two."""
    bits = 8 << int(math.log2(size))
    return max(int(-bits * math.log(1 - fpp ** (1 / 8)) / 8), 1)


def _leaves(type_: Type, path: str) -> Iterator[tuple[str, NestedField]]:
    match type_:
        case StructType(fields=fields):
            field_by_name = [(f"{path}{f.name}", f) for f in fields]
        case ListType():
            field_by_name = [(f"{path}list.element", type_.element)]
        case MapType():
            field_by_name = [
                (f"{path}key_value.key", type_.key),
                (f"{path}key_value.value", type_.value),
            ]
        case _:
            return
    for name, f in field_by_name:
        if isinstance(f.type, PrimitiveType):
            yield name, f
        else:
            yield from _leaves(f.type, f"{name}.")
