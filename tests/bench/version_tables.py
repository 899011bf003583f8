"""The table of `plan_table.py` in three forms of manifests.

The forms are: Avro manifests; Parquet leaves below a root manifest; and the same with manifest
deletion vectors of ten of the leaves.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from iceberg_pyspark.formats.roots.content_writer import write_content_entries
from iceberg_pyspark.formats.roots.leaf_manifests import write_leaf_manifest
from iceberg_pyspark.spec.content_entries import (
    ContentStatus,
    LeafEntry,
    ManifestVectorEntry,
    RootEntry,
)
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.table_metadata import metadata_from_bytes, metadata_to_bytes
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.bench.plan_table import DAYS, SCHEMA, SNAPSHOT_ID, SPEC, make_table, table_entries

FORMS = ("avro", "root", "masked")
_SMALL = 10
_VECTORS = 10


def one_more() -> str:
    """Create small tables in the forms `avro` and `root`; return the location of `root`."""
    table_of_form("avro", _SMALL, _SMALL)
    return table_of_form("root", _SMALL, _SMALL)


def table_of_form(form: str, files: int, per_manifest: int) -> str:
    """Return the metadata location of such a table, which is kept between runs."""
    name = f"iceberg-pyspark-version-bench-{form}-{files}-{per_manifest}"
    folder = Path(tempfile.gettempdir()) / name
    location = folder / "metadata" / "00000-bench.metadata.json"
    if not location.exists():
        # Use another name until the table is complete, so that an aborted run leaves no part.
        making = Path(tempfile.mkdtemp(dir=folder.parent))
        io = LocalFileIO()
        make_table(io, str(making), str(folder), files, per_manifest, in_order=False)
        if form != "avro":
            _give_root(io, making, str(folder), files, per_manifest, masked=form == "masked")
        making.rename(folder)
    return str(location)


def _give_root(
    io: LocalFileIO, folder: Path, location: str, files: int, per_manifest: int, *, masked: bool
) -> None:
    file = folder / "metadata" / "00000-bench.metadata.json"
    at = f"file:{location}"
    leaves = [
        _leaf(io, folder, at, i, range(start, min(start + per_manifest, files)))
        for i, start in enumerate(range(0, files, per_manifest))
    ]
    entries: list[RootEntry] = []
    next_row_id = 0
    for i, leaf in enumerate(leaves):
        path = f"{at}/metadata/leaf-{i}.parquet"
        numbered = replace(
            leaf,
            manifest_path=path,
            sequence_number=1,
            min_sequence_number=1,
            first_row_id=next_row_id,
        )
        next_row_id += leaf.added_rows_count or 0
        entries.append(LeafEntry(status=ContentStatus.ADDED, manifest=numbered))
        if masked and i < _VECTORS:
            dead = range(0, per_manifest, 10)
            entries.append(
                ManifestVectorEntry(
                    status=ContentStatus.ADDED,
                    snapshot_id=SNAPSHOT_ID,
                    sequence_number=1,
                    spec_id=0,
                    leaf=path,
                    cardinality=len(dead),
                    inline=encode_deletion_vector(dead),
                )
            )
    write_content_entries(
        io,
        f"{folder}/metadata/root.parquet",
        entries,
        content="root",
        schema=SCHEMA,
        partition_types={},
        table_location=at,
    )
    metadata = metadata_from_bytes(file.read_bytes(), str(file))
    (snapshot,) = metadata.snapshots
    snapshot = replace(
        snapshot,
        manifest_list=None,
        root_manifest=f"{at}/metadata/root.parquet",
        table_location=at,
        first_row_id=0,
        added_rows=next_row_id,
    )
    new_metadata = replace(
        metadata,
        format_version=4,
        location=at,
        snapshots=(snapshot,),
        next_row_id=next_row_id,
    )
    file.write_bytes(metadata_to_bytes(new_metadata))


def _leaf(
    io: LocalFileIO, folder: Path, location: str, number: int, numbers: range
) -> ManifestFile:
    return write_leaf_manifest(
        io,
        f"{folder}/metadata/leaf-{number}.parquet",
        (
            replace(e, data_file=replace(e.data_file, column_sizes=None))
            for e in table_entries(location, numbers, Random(1), lambda n: n % DAYS)
        ),
        spec=SPEC,
        schema=SCHEMA,
        partition_type=partition_type(SPEC, [SCHEMA]),
        table_location=location,
        content=ManifestContent.DATA,
        snapshot_id=SNAPSHOT_ID,
    )
