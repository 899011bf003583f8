"""The module that gives Iceberg to dbt's sessions: dbt imports all top-level `dbt_*` modules."""

import iceberg_pyspark.auto  # noqa: F401

plugins: list[type] = []
"""dbt's name for the plugin classes of such a module: nothing but the import is needed here."""
