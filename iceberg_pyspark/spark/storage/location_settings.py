"""Session settings for the locations that tables may read.

The settings are `spark.sql.iceberg.read.allow-outside-locations` and
`spark.sql.iceberg.read.restrict-locations`. The session's setting takes precedence over the
catalog's property, and an option of a read takes precedence over both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.storage.restricted_io import LOCATION_OPTIONS

_SESSION = "spark.sql.iceberg."


def with_location_settings(
    loaded_table: LoadedTable, session: Mapping[str, str], options: Mapping[str, str] | None = None
) -> LoadedTable:
    """Return the table with its configuration completed by session settings and by read options."""
    settings = {o: session[_SESSION + o] for o in LOCATION_OPTIONS if _SESSION + o in session}
    settings |= {o: options[o] for o in LOCATION_OPTIONS if options and o in options}
    return (
        replace(loaded_table, config={**loaded_table.config, **settings})
        if settings
        else loaded_table
    )
