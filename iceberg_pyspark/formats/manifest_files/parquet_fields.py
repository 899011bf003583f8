"""Columns of Parquet metadata files: Arrow fields with field ids, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column: TypeAlias = tuple[pa.Field, pa.Array]


def parquet_field(field_id: int, name: str, type_: pa.DataType, *, required: bool = False) -> Any:
    """Return an Arrow field whose field id is written to Parquet files."""
    # nested types are equal even if the field ids in them differ, so they are no keys of a cache
    make = _field if type_.num_fields else _flat_field
    return make(field_id, name, type_, required)


def _field(field_id: int, name: str, type_: pa.DataType, required: bool) -> Any:
    return pa.field(name, type_, not required, {"PARQUET:field_id": str(field_id)})


_flat_field = lru_cache(maxsize=4096)(_field)


def struct_column(
    field_id: int,
    name: str,
    children: Sequence[Column],
    is_there: npt.NDArray[np.bool_] | None = None,
    *,
    required: bool = False,
) -> Column:
    """Return a struct of columns, null where the mask `is_there` is given and False."""
    fields = [field for field, _ in children]
    mask = None if is_there is None or is_there.all() else pa.array(~is_there)
    array = pa.StructArray.from_arrays([a for _, a in children], fields=fields, mask=mask)
    return parquet_field(field_id, name, pa.struct(fields), required=required), array


def column_paths(fields: Iterable[pa.Field], path: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path of each Parquet column, and its Arrow type; maps are not supported.

    >>> places = pa.list_(pa.field("element", pa.int64()))
    >>> [p for p, _ in column_paths([pa.field("s", pa.struct([pa.field("l", places)]))])]
    ['s.l.list.element']
    """
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from column_paths(field.type, f"{path}{field.name}.")
        elif pa.types.is_list(field.type):
            yield f"{path}{field.name}.list.element", field.type.value_type
        else:
            yield f"{path}{field.name}", field.type


def unlike(used_names: set[str], name: str, field_id: int) -> str:
    """Return an unused name: append the field id until the name is not in `used_names`, and add it.

    >>> taken = {"a"}
    >>> unlike(taken, "a", 7), unlike(taken, "b", 8), sorted(taken)
    ('a_7', 'b', ['a', 'a_7', 'b'])
    """
    while name in used_names:
        name = f"{name}_{field_id}"
    used_names.add(name)
    return name
