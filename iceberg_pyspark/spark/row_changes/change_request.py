"""What a client tells the data source of the changed rows that it writes, and of pinned reads.

The client and the data source may be on different machines; both forms travel as JSON in one option
of the format `iceberg-py` each, which is no option for users.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Each step of each read imports this module.
    from iceberg_pyspark.table.row_level.isolation import OperationName

PINNED = "pinned-state"
"""The option of reads that has a `PinnedRead`."""

STATE = "table-state"
"""The option of reads that asks for the table's state instead of its rows."""

TABLE_CALL = "table-call"
"""The option that has a call of a table's methods (`data_source/table_calls.py`)."""

REWRITE = "rewrite-data-files"
"""The option of reads whose tasks rewrite data files (`data_source/rewrite_job.py`)."""

ROW_CHANGES = "row-changes"
"""The option of writes that has a `ChangeRequest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRead:
    """A read of the table as a metadata file describes it; of these data files only, if given.

    `filter` is a bound predicate as JSON (`expressions/json.py`), None for all rows. With
    `without_whole_files`, files are left out of which it selects all rows.
    """

    metadata_location: str
    filter: Any = None
    data_files: tuple[str, ...] | None = None
    without_whole_files: bool = False

    def text(self) -> str:
        """Return the value of the option."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> PinnedRead:
        """Return the read of an option's value."""
        values = json.loads(text)
        files = values["data_files"]
        return cls(**{**values, "data_files": None if files is None else tuple(files)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """A write of rows for `table/row_level/change_task.py` to the table at a pinned metadata file.

    `filter` is a bound predicate as JSON, which the rows fulfil that matter to the operation; None:
    any row may. `rewritten_files`
    are replaced as a whole; None: rows are deleted by position. `matched` and
    `not_matched_by_source` are the numbers of the operations of a merge's clauses. With
    `deletes_whole_files`, files of which `filter` selects all rows are deleted too; their rows are
    not among those written.
    """

    operation: OperationName
    metadata_location: str
    write_id: str
    filter: Any
    rewritten_files: tuple[str, ...] | None
    requires_single_match: bool
    transaction: tuple[str, int] | None
    matched: tuple[int, ...] = ()
    not_matched_by_source: tuple[int, ...] = ()
    epoch: tuple[str, int, int | None, str] | None = None
    """The fields of a `StreamEpoch`: the change of a batch that this is, committed once."""
    deletes_whole_files: bool = False

    def text(self) -> str:
        """Return the value of the option."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> ChangeRequest:
        """Return the request of an option's value."""
        values = json.loads(text)
        lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
        return cls(**{**values, **lists})
