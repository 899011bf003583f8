"""HDFS without a server: locations that are refused before a server is asked.

tests/stores has the tests with a server.
"""

from __future__ import annotations

import builtins
import pickle
from typing import Any

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage import hdfs_io
from iceberg_pyspark.storage.hdfs_io import HdfsFileIO
from iceberg_pyspark.storage.open_storage import open_storage


def test_it_pickles_and_shows_no_values() -> None:
    io = HdfsFileIO({"hdfs.user": "ali"})
    assert pickle.loads(pickle.dumps(io)) == io
    assert repr(io) == "HdfsFileIO(properties: hdfs.user)"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = builtins.__import__

    def absent(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "hdfs_native":
            raise ImportError("no hdfs_native")
        return import_module(name, *arguments, **more)

    hdfs_io._client.cache_clear()
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(StorageError, match=r"pip install 'iceberg-pyspark\[hdfs\]'"):
        open_storage("hdfs://h/t", {})


@pytest.mark.parametrize("name", ["a:b", "a//b", "/b", "../b", "a/./b", "a/..", "a\x00b"])
def test_names_that_hdfs_lacks_are_refused(name: str) -> None:
    with pytest.raises(StorageError, match="not supported in HDFS"):
        HdfsFileIO().exists(f"hdfs://h/t/{name}")


@pytest.mark.parametrize("user", ["a@b", "a/b", "a:b", "a b"])
def test_a_user_that_would_name_another_server_is_refused(user: str) -> None:
    with pytest.raises(StorageError, match="not the name of a user"):
        HdfsFileIO({"hdfs.user": user}).exists("hdfs://h/t")


def test_clients_wait_for_another_name_node_only_where_there_may_be_one() -> None:
    assert hdfs_io.client_settings("names:8020") == {"dfs.client.failover.max.attempts": "3"}
    assert hdfs_io.client_settings("cluster") == {}
    assert hdfs_io.client_settings("") == {}
