"""Where a session lets tables read: `spark.sql.iceberg.read.allow-outside-locations` and its twin.

Said for the session it counts before what the catalog says; an option of one read before both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.storage.restricted import LOCATION_OPTIONS

_SESSION = "spark.sql.iceberg."


def session_settings(spark: SparkSession) -> dict[str, str]:
    """What the session says of locations, by the names that it is said with."""
    said = {key: spark.conf.get(key, None) for key in (_SESSION + o for o in LOCATION_OPTIONS)}
    return {key: value for key, value in said.items() if value is not None}


def as_session_reads(
    loaded: LoadedTable, session: Mapping[str, str], options: Mapping[str, str] | None = None
) -> LoadedTable:
    """The table with the settings of a session, and with the options of one read, laid over it."""
    said = {o: session[_SESSION + o] for o in LOCATION_OPTIONS if _SESSION + o in session}
    said |= {o: options[o] for o in LOCATION_OPTIONS if options and o in options}
    return replace(loaded, config={**loaded.config, **said}) if said else loaded
