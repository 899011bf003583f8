"""A path stored relative to the table resolves to the original path."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.relative_paths import relative_path, resolved_path

PATHS = st.text("ab:/.+-1 \n", max_size=8) | st.text(max_size=4)
LOCATIONS = st.builds("{}{}".format, st.sampled_from(["s3://b", "file:", "/", "a", ""]), PATHS)


@given(location=LOCATIONS, path=PATHS, is_below=st.booleans())
def test_a_stored_path_resolves_to_the_path_that_it_was(
    location: str, path: str, is_below: bool
) -> None:
    path = f"{location}/{path}" if is_below else path
    try:
        stored = relative_path(path, location)
    except InvalidRequestError:
        # The path cannot be stored, because it would resolve to another path.
        assert resolved_path(path, location) != path
        return
    assert resolved_path(stored, location) == path


@given(location=LOCATIONS, path=PATHS)
def test_a_path_below_the_table_is_stored_relative_unless_it_would_be_absolute(
    location: str, path: str
) -> None:
    is_taken_for_absolute = resolved_path(path, location) == path
    assume(not is_taken_for_absolute)
    assert relative_path(f"{location}/{path}", location) == path


@pytest.mark.parametrize("path", ["/x/a", "data/a", "", "s3//b/t/a"])
def test_a_path_without_scheme_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequestError, match="has no scheme"):
        relative_path(path, "s3://b/t")
