"""Metadata of other writers is read or refused on purpose."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.table_metadata import metadata_from_json, metadata_to_json
from tests.support.foreign_metadata import DOCUMENT, FOREIGN_METADATA, ForeignMetadata


@pytest.mark.parametrize("case", FOREIGN_METADATA, ids=lambda case: case.name)
def test_metadata_of_other_writers_is_read_or_refused(case: ForeignMetadata) -> None:
    if case.is_read:
        metadata = metadata_from_json(case.document)
        assert metadata_from_json(metadata_to_json(metadata)) == metadata
    else:
        with pytest.raises(InvalidMetadataError):
            metadata_from_json(case.document)


def test_missing_keys_have_the_values_they_imply() -> None:
    whole = metadata_from_json(DOCUMENT)
    for case in FOREIGN_METADATA[:3]:
        assert metadata_from_json(case.document) == whole
