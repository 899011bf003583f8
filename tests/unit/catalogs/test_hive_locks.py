"""The Hive catalog without a metastore: the clock of its locks, and settings that are refused."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from iceberg_pyspark.catalogs.hive import locks
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError


def test_the_clock_of_a_lock_counts_the_time_asleep_where_there_is_such_a_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", "boot time", raising=False)
    monkeypatch.setattr(time, "clock_gettime", {"boot time": 7.0}.__getitem__, raising=False)
    assert locks._now() == 7.0
    monkeypatch.delattr(time, "clock_gettime")
    monkeypatch.setattr(time, "monotonic", lambda: 8.0)
    assert locks._now() == 8.0


def test_the_module_needs_no_posix() -> None:
    without_posix = (
        "import os, time\n"
        "for module, names in ((os, ['register_at_fork']),"
        " (time, ['clock_gettime', 'CLOCK_BOOTTIME', 'CLOCK_MONOTONIC'])):\n"
        "    for name in names:\n"
        "        if hasattr(module, name):\n"
        "            delattr(module, name)\n"
        "from iceberg_pyspark.catalogs.hive import locks\n"
        "assert locks._now() > 0\n"
    )
    subprocess.run([sys.executable, "-c", without_posix], check=True)


@pytest.mark.parametrize(
    ("properties", "error", "message"),
    [
        ({"hive.kerberos-authentication": "true"}, UnsupportedFeatureError, "Kerberos"),
        ({"hadoop.hive.metastore.sasl.enabled": "true"}, UnsupportedFeatureError, "sasl"),
        ({"hive.metastore.use.SSL": "true"}, UnsupportedFeatureError, "TLS"),
        ({"type": "hive", "uri": "http://host:9083"}, InvalidRequestError, "thrift://"),
        ({"uri": "thrift://host:9083,other"}, InvalidRequestError, "commas"),
        ({"iceberg.hive.lock-timeout-ms": "soon"}, InvalidRequestError, "milliseconds"),
        ({"lock-check-max-wait-time": "0"}, InvalidRequestError, "seconds"),
        ({"hive.metastore.client.socket.timeout": "1 day"}, InvalidRequestError, "600s"),
    ],
)
def test_settings_that_are_refused(
    properties: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_catalog("lake", **{"uri": "thrift://host:9083", **properties})
