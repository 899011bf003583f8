"""Entries of encrypted tables in a Hive metastore, which Java's catalog reads too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iceberg_pyspark.catalogs.hive.metastore_entries import changed_table, new_table
from iceberg_pyspark.errors import CatalogError
from tests.support.commit_tables import commit_table

KEY = {"encryption.key-id": "keyA"}


def test_the_entry_has_the_key_and_loses_the_hash_of_older_metadata() -> None:
    loaded = commit_table(format_version=3).loaded
    loaded = replace(loaded, metadata=replace(loaded.metadata, properties=KEY))
    entry = new_table(loaded, "me", 0, 100, for_hive=False)
    assert entry["parameters"].items() >= KEY.items()
    entry["parameters"]["metadata_hash"] = "of the metadata before"
    later = changed_table(entry, loaded, loaded, 100, for_hive=False)
    assert "metadata_hash" not in later["parameters"]
    assert later["parameters"].items() >= KEY.items()


@pytest.mark.parametrize("properties", [{}, {"encryption.key-id": "keyB"}])
def test_metadata_that_lost_the_key_is_not_committed(properties: dict[str, str]) -> None:
    loaded = commit_table(format_version=3).loaded
    encrypted = replace(loaded, metadata=replace(loaded.metadata, properties=KEY))
    entry = new_table(encrypted, "me", 0, 100, for_hive=False)
    tampered = replace(loaded, metadata=replace(loaded.metadata, properties=properties))
    with pytest.raises(CatalogError, match="keyA in the Hive metastore; somebody may have changed"):
        changed_table(entry, tampered, tampered, 100, for_hive=False)
