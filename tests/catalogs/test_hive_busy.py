"""Locks of a Hive metastore that answers with internal errors, as one does that is too busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.hive.metastore_client import (
    INTERNAL_ERROR,
    UNKNOWN_CALL,
    HiveAnswerError,
    HiveClient,
)
from iceberg_pyspark.errors import CatalogError, CatalogUnavailableError
from tests.support.catalog_contract import set_property
from tests.support.hive_catalogs import hold_lock, locks_of, metadata_files, open_catalog

pytestmark = pytest.mark.nightly

FOR_EVER = 1_000_000


class Busy:
    """A client whose calls fail: the first calls of an operation, before or after they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._call: Callable[..., Any] = HiveClient.call
        self._failures: dict[str, tuple[int, bool, Exception]] = {}
        self.calls: Counter[str] = Counter()
        busy = self

        def call(client: HiveClient, name: str, /, **arguments: Any) -> Any:
            busy.calls[name] += 1
            count, is_made, error = busy._failures.get(name, (0, False, None))
            if busy.calls[name] > count or error is None:
                return busy._call(client, name, **arguments)
            if is_made:
                busy._call(client, name, **arguments)
            raise error

        monkeypatch.setattr(HiveClient, "call", call)

    def fail(
        self, operation: str, count: int, *, made: bool = False, error: Exception | None = None
    ) -> None:
        internal_error = HiveAnswerError(f"Internal error processing {operation}", INTERNAL_ERROR)
        self._failures[operation] = (count, made, error or internal_error)

    def recover(self) -> None:
        self._monkeypatch.setattr(HiveClient, "call", self._call)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    return Busy(monkeypatch)


def assert_done(hive_catalog: HiveCatalog, hive_events: TableIdentifier, busy: Busy) -> None:
    """Assert that a commit succeeds and leaves no lock."""
    done = set_property(hive_catalog, hive_events, "a", "1")
    busy.recover()
    assert hive_catalog.load_table(hive_events) == done
    assert done.metadata.properties["a"] == "1"
    assert locks_of(hive_catalog, hive_events) == []


def test_a_lock_is_requested_again_after_an_internal_error(
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    busy: Busy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    busy.fail("lock", 2)
    assert_done(hive_catalog, hive_events, busy)
    assert busy.calls["lock"] == 3
    assert "is requested again" in caplog.text


def test_a_lock_that_was_granted_with_an_internal_error_is_found(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, busy: Busy
) -> None:
    busy.fail("lock", 1, made=True)
    assert_done(hive_catalog, hive_events, busy)
    assert busy.calls["lock"] == 1


def test_a_lock_that_cannot_be_looked_up_is_not_requested_twice(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, busy: Busy
) -> None:
    busy.fail("lock", 1, made=True)
    busy.fail("show_locks", 2)
    assert_done(hive_catalog, hive_events, busy)
    assert busy.calls["lock"] == 1


def test_a_metastore_that_creates_no_lock_in_time_refuses_the_commit(
    hive_uri: str,
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    tmp_path: Path,
    busy: Busy,
) -> None:
    hasty = open_catalog(hive_uri, tmp_path, **{"iceberg.hive.lock-creation-timeout-ms": "300"})
    busy.fail("lock", FOR_EVER)
    with pytest.raises(
        CatalogError, match=r"no lock of .* within 0\.3 s .*Internal error.*lock-enabled"
    ):
        set_property(hasty, hive_events, "a", "1")
    assert busy.calls["lock"] > 1
    busy.recover()
    assert metadata_files(tmp_path) == 1
    assert_done(hive_catalog, hive_events, busy)


def test_a_lock_that_may_be_held_when_time_is_up_is_given_back(
    hive_uri: str,
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    tmp_path: Path,
    busy: Busy,
) -> None:
    hasty = open_catalog(hive_uri, tmp_path, **{"iceberg.hive.lock-creation-timeout-ms": "10"})
    busy.fail("lock", 1, made=True)
    with pytest.raises(CatalogError, match="created no lock"):
        set_property(hasty, hive_events, "a", "1")
    assert locks_of(hive_catalog, hive_events) == []
    assert metadata_files(tmp_path) == 1


def test_a_metastore_that_breaks_after_an_internal_error_refuses_the_commit(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, tmp_path: Path, busy: Busy
) -> None:
    busy.fail("lock", 1)
    busy.fail("show_locks", FOR_EVER, error=CatalogUnavailableError("gone"))
    with pytest.raises(CatalogUnavailableError, match="gone"):
        set_property(hive_catalog, hive_events, "a", "1")
    assert busy.calls["show_locks"] == 2
    assert metadata_files(tmp_path) == 1


@pytest.mark.parametrize("code", [UNKNOWN_CALL, "TxnAbortedException"])
def test_another_error_answer_to_a_lock_is_final(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, tmp_path: Path, busy: Busy, code: str
) -> None:
    busy.fail("lock", FOR_EVER, error=HiveAnswerError("no such method", code))
    with pytest.raises(CatalogError, match="no such method; where the metastore has no locks"):
        set_property(hive_catalog, hive_events, "a", "1")
    assert busy.calls["lock"] == 1
    assert metadata_files(tmp_path) == 1


def test_a_lock_whose_state_cannot_be_read_is_waited_for(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, busy: Busy
) -> None:
    other = hold_lock(hive_catalog, hive_events)
    busy.fail("check_lock", 2)
    check = busy._call

    def given_back(client: HiveClient, name: str, /, **arguments: Any) -> Any:
        if name == "check_lock":
            check(client, "unlock", rqst={"lockid": other})
            busy._call = check
        return check(client, name, **arguments)

    busy._call = given_back
    assert_done(hive_catalog, hive_events, busy)
    assert busy.calls["check_lock"] == 3


@pytest.mark.parametrize("made", [False, True])
def test_a_lock_is_given_back_again_after_an_internal_error(
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    busy: Busy,
    caplog: pytest.LogCaptureFixture,
    made: bool,
) -> None:
    busy.fail("unlock", 1, made=made)
    assert_done(hive_catalog, hive_events, busy)
    assert busy.calls["unlock"] == 2
    assert "was not given back" not in caplog.text


def test_a_lock_that_is_never_given_back_fails_nothing(
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    busy: Busy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    busy.fail("unlock", FOR_EVER)
    done = set_property(hive_catalog, hive_events, "a", "1")
    busy.recover()
    assert hive_catalog.load_table(hive_events) == done
    assert "was not given back" in caplog.text
    (lock,) = locks_of(hive_catalog, hive_events)
    hive_catalog._hive.call("unlock", rqst={"lockid": lock["lockid"]})
