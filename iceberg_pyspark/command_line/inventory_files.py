"""Reads an inventory of a store: a file that lists the files of a table's folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from iceberg_pyspark.errors import InvalidRequestError

if TYPE_CHECKING:
    from iceberg_pyspark.table.maintenance.removal.orphan_files import Inventory

_PATH, _TIME = "file_path", "last_modified"


def inventory_of(location: str) -> Inventory:
    """Return a function that reads an inventory, a Parquet or a CSV file (`.csv`), in batches.

    Its columns are `file_path`, a string, and `last_modified`, a timestamp, in UTC if it has no
    time zone; an empty time means a new file. Each call of the function reads the file again.
    Raises `InvalidRequestError` for a file that is missing, damaged or without these columns.
    """
    try:
        dataset = ds.dataset(location, format="csv" if location.endswith(".csv") else "parquet")
    except (OSError, pa.ArrowException) as e:
        raise InvalidRequestError(
            f"remove_orphan_files: the inventory {location} cannot be read: {e}"
        ) from e
    types = {field.name: field.type for field in dataset.schema}
    time = types.get(_TIME)
    if not (
        types.get(_PATH) in (pa.string(), pa.large_string())
        and time is not None
        and (pa.types.is_timestamp(time) or pa.types.is_null(time))
    ):
        columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        raise InvalidRequestError(
            f"remove_orphan_files: the inventory {location} must have the columns {_PATH} (string) "
            f"and {_TIME} (timestamp, such as 2026-01-31T12:00:00Z); it has {columns}"
        )

    def files() -> Iterator[tuple[str, int | None]]:
        for batch in dataset.to_batches(columns=[_PATH, _TIME]):
            times = batch[_TIME]
            if pa.types.is_timestamp(times.type):
                times = times.cast(pa.timestamp("ms", tz=times.type.tz), safe=False)
            pairs = zip(batch[_PATH].to_pylist(), times.cast(pa.int64()).to_pylist(), strict=True)
            yield from ((path, time_ms) for path, time_ms in pairs if path is not None)

    return files
