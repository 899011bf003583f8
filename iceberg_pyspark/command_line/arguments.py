"""Defines the arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="The table's name, such as db.table, or its path.")
]
NamespaceName = Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace's name.")]
SnapshotId = Annotated[
    int | None,
    typer.Option("--snapshot-id", help="Read this snapshot. Default: the current snapshot."),
]
Limit = Annotated[int, typer.Option(min=0, help="Print at most this number of rows.")]
