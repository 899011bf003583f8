"""Secrets in what libraries log at DEBUG, in the words of botocore and py4j."""

from __future__ import annotations

import logging

import pytest

from iceberg_pyspark.storage.library_logs import redact_logs_of
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.table.maintenance.removal import purge_table  # noqa: F401 - has a logger
from tests.support.secret_forms import filled, new_secret


@pytest.fixture
def package(request: pytest.FixtureRequest) -> str:
    """Return the name of a package whose loggers nothing else uses."""
    name = f"library_of_{request.node.name}"
    logging.getLogger(f"{name}.auth").setLevel(logging.DEBUG)
    return name


def test_each_logger_of_a_package_redacts(package: str, caplog: pytest.LogCaptureFixture) -> None:
    redact_logs_of(package)
    later = logging.getLogger(f"{package}.later")
    redact_logs_of(package)
    redact_logs_of(package)
    secret = new_secret()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger(f"{package}.auth").debug("headers: %s", {"Authorization": secret})
        later.warning("x-amz-security-token:%s", secret)
        logging.getLogger("elsewhere").warning("password=%s", "shown")
    assert caplog.messages == [
        "headers: {'Authorization': '***'}",
        "x-amz-security-token:***",
        "password=shown",
    ]


def test_tracebacks_are_redacted_too(package: str, caplog: pytest.LogCaptureFixture) -> None:
    redact_logs_of(package)
    log = logging.getLogger(f"{package}.auth")
    secret = new_secret()
    try:
        raise ValueError(f"postgresql://me:{secret}@h")
    except ValueError:
        log.exception("failed")
    try:
        raise ValueError("plain")
    except ValueError:
        log.exception("failed")
    assert "ValueError: postgresql://***@h" in caplog.text
    assert "ValueError: plain" in caplog.text
    assert secret not in caplog.text


def test_arguments_that_do_not_fit_are_left_to_the_handler(package: str) -> None:
    redact_logs_of(package)
    log = logging.getLogger(f"{package}.auth")
    record = log.makeRecord(log.name, logging.DEBUG, "f", 1, "%d %d", ("x",), None)
    assert log.filter(record)
    assert record.args == ("x",)


def test_what_we_log_ourselves_is_redacted(caplog: pytest.LogCaptureFixture) -> None:
    open_storage("/t", {})
    text, secret = filled("ftp://me:{}@h/t")
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("iceberg_pyspark.table.maintenance.removal.purge_table").warning(
            "not deleted: %s", text
        )
    assert caplog.messages == ["not deleted: ftp://***@h/t"]
    assert secret not in caplog.text
