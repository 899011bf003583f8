"""Appends whose commits toxiproxy cuts off, on the way to the server or on the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.rest.rest_session import LostAnswer
from iceberg_pyspark.errors import CommitStateUnknownError
from tests.services.toxiproxy import Proxy
from tests.support.catalog_contract import new_name
from tests.support.table_integrity import table_problems, unreferenced_files

SOON = {"commit.status-check.min-wait-ms": "1", "commit.status-check.num-retries": "2"}
"""Properties of a table whose lost commits are looked up without a long wait."""
LOST_ANSWERS: Mapping[str, Mapping[str, int]] = {
    "limit_data": {"bytes": 1},
    "reset_peer": {"timeout": 0},
}
"""Toxics that let the server carry the commit out, and break the connection at its answer."""
LOST_REQUESTS: Mapping[str, Mapping[str, int]] = {**LOST_ANSWERS, "timeout": {"timeout": 200}}
"""Toxics that let nothing, or one byte, of the commit arrive, and break the connection."""


class CommitCutter:
    """Disturbs the proxy while the next commit is sent; `around` wraps what sends a commit."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._next: tuple[str, Literal["upstream", "downstream"], Mapping[str, int]] | None = None
        self.cuts = 0
        """The number of commits that got no answer."""

    def cut_next(
        self, kind: str, stream: Literal["upstream", "downstream"], attributes: Mapping[str, int]
    ) -> None:
        """Break the connection of the next commit."""
        self._next = kind, stream, attributes

    def around(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """Return `send` so that the proxy is disturbed during its next call."""

        def sent(*arguments: Any, **keywords: Any) -> Any:
            if self._next is None:
                return send(*arguments, **keywords)
            (kind, stream, attributes), self._next = self._next, None
            with self._proxy.toxic(kind, stream, **attributes):
                try:
                    answer = send(*arguments, **keywords)
                except Exception:
                    self.cuts += 1
                    raise
            self.cuts += isinstance(answer, LostAnswer)
            return answer

        return sent


def check_lost_answers(catalog: TableCatalog, direct: TableCatalog, cutter: CommitCutter) -> None:
    """Append while answers get lost: each append is done, and no file is deleted or left over."""
    name, table = _new_table(catalog, direct)
    for number, (kind, attributes) in enumerate(LOST_ANSWERS.items()):
        cutter.cut_next(kind, "downstream", attributes)
        table.append(_row(number))
        assert cutter.cuts == number + 1
    after = direct.load_table(name)
    assert _ids(after) == [*range(len(LOST_ANSWERS))]
    assert len(after.snapshots) == len(LOST_ANSWERS)
    assert table_problems(after) == []
    assert unreferenced_files(after) == set()


def check_lost_requests(catalog: TableCatalog, direct: TableCatalog, cutter: CommitCutter) -> None:
    """Append while requests get lost: the outcome is unknown, and the files stay."""
    name, table = _new_table(catalog, direct)
    for number, (kind, attributes) in enumerate(LOST_REQUESTS.items()):
        files = _data_files(table)
        cutter.cut_next(kind, "upstream", attributes)
        with pytest.raises(CommitStateUnknownError, match="delete no file"):
            table.append(_row(-1))
        assert cutter.cuts == number + 1
        assert len(_data_files(table) - files) == 1, "a late request may still publish the file"
        table.refresh().append(_row(number))
    after = direct.load_table(name)
    assert _ids(after) == [*range(len(LOST_REQUESTS))]
    assert len(after.snapshots) == len(LOST_REQUESTS)
    assert table_problems(after) == []


def _new_table(catalog: TableCatalog, direct: TableCatalog) -> tuple[str, Table]:
    namespace = new_name("lost")
    name = f"{namespace}.events"
    direct.create_namespace(namespace)
    direct.create_table(name, "id BIGINT", properties=SOON)
    return name, catalog.load_table(name)


def _row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64())})


def _ids(table: Table) -> Sequence[int]:
    ids: list[int] = table.scan().to_arrow()["id"].to_pylist()
    return sorted(ids)


def _data_files(table: Table) -> set[str]:
    return {f.location for f in table.io.list_files(f"{table.location}/data")}
