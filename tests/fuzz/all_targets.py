"""The list of all targets."""

from __future__ import annotations

from tests.fuzz.file_targets import FILE_TARGETS
from tests.fuzz.metadata_targets import METADATA_TARGETS
from tests.fuzz.planned_targets import PLANNED_TARGETS
from tests.fuzz.root_targets import ROOT_TARGETS
from tests.fuzz.targets import Target
from tests.fuzz.text_targets import TEXT_TARGETS

TARGETS: tuple[Target, ...] = (
    *METADATA_TARGETS,
    *PLANNED_TARGETS,
    *FILE_TARGETS,
    *ROOT_TARGETS,
    *TEXT_TARGETS,
)


def target_named(name: str) -> Target:
    return next(t for t in TARGETS if t.name == name)
