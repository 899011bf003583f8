"""Defines the arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="Its name, db.table, or path.")]
NamespaceName = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Its name.")]
SnapshotId = Annotated[
    int | None, typer.Option("--snapshot-id", help="The snapshot; else the current one.")
]
Limit = Annotated[int, typer.Option(min=0, help="How many rows at most.")]
