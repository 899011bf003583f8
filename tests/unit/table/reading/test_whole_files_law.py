"""For random tables and filters, a decision about a whole file is true of each of its rows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark import TableCatalog, load_catalog
from iceberg_pyspark.table.reading.whole_files import select_files
from tests.support.naive_rows import read
from tests.support.sql_conditions import conditions
from tests.support.table_histories import a_history


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("whole")
    return load_catalog("whole", type="hadoop", warehouse=str(folder))


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_all_rows_of_whole_files_match_and_none_of_those_left_out(
    catalog: TableCatalog, data: st.DataObject
) -> None:
    history = a_history(data.draw, catalog)
    struct = history.struct
    filters = data.draw(
        st.lists(conditions(struct).filter(lambda c: c.is_filter), min_size=3, max_size=6)
    )
    for condition in filters:
        note(condition.text)
        selection = select_files(history.table.scan(filter=condition.text))
        for row in history.rows:
            if not row.is_live:
                continue
            matches = condition.decide(read(struct, row.stored)) is True
            if row.file_path in selection.whole:
                assert matches, f"{row.stored} of a whole file is not selected by {condition}"
            elif row.file_path not in selection.partial:
                assert not matches, f"{row.stored} is selected by {condition}, its file is not"
