"""The tested releases of Spark, and the folder of the files that their tests need."""

from __future__ import annotations

from pathlib import Path

RELEASES = (
    "4.0.0",
    "4.0.5",
    "4.1.0",
    "4.1.1",
    "4.1.2",
    "4.1.3",
    "4.1.4",
    "4.2.0",
    "4.2.1",
    "4.3.0",
)
"""For Spark 4.0, the first and the last release stand for the releases between them."""

LACKING = {
    **{
        release: {"schema_evolution", "orc_zones", "changelog", "annotated_columns"}
        for release in RELEASES
        if release < "4.1"
    },
    **{release: {"orc_zones", "changelog"} for release in RELEASES if release.startswith("4.1.")},
}
"""Internals that a release lacks, by their names in `IcebergPyInternals`; other releases have all.
"""

FOLDER = Path(__file__).parents[2] / ".releases"
"""`jars/<release>` and environments `<release>`, kept between runs."""
