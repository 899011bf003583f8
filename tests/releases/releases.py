"""Which releases of Spark there are to work on, and where what tests need of them is kept."""

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
"""Of 4.0 the first and the last stand for those between."""

LACKING = {
    **{release: {"schema_evolution", "orc_zones"} for release in RELEASES if release < "4.1"},
    **{release: {"orc_zones"} for release in RELEASES if release.startswith("4.1.")},
}
"""Internals that a release does not have, as `IcebergPyInternals` calls them; others have all."""

KEPT = Path(__file__).parents[2] / ".releases"
"""`jars/<release>` and environments `<release>`, kept between runs."""
