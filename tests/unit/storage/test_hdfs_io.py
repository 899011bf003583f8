"""HDFS without a server: locations that are refused before a server is asked.

tests/stores has the tests with a server.
"""

from __future__ import annotations

import builtins
import pickle
import sys
from functools import partial
from typing import Any

import pytest

from iceberg_pyspark.errors import FileNotWrittenError, StorageError
from iceberg_pyspark.storage import hdfs_client, hdfs_io
from iceberg_pyspark.storage.hdfs_io import HdfsFileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.support.stalling_server import Answer, serving, silent, slowly


def test_hdfs_io_pickles_and_its_repr_hides_values() -> None:
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
    monkeypatch.delitem(sys.modules, "iceberg_pyspark.storage.hdfs_client")
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


@pytest.mark.parametrize("answer", [silent, partial(slowly, b"\0\0\xff\xff")])
def test_a_name_node_that_does_not_end_its_answer(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdfs_client, "CALL_S", 0.3)
    with serving(answer) as uri:
        file = f"{uri.replace('http:', 'hdfs:')}/t/f"
        for ask in (HdfsFileIO().size, HdfsFileIO().read_bytes, HdfsFileIO().list_folder):
            with pytest.raises(StorageError, match=r"hdfs://127.*no answer within 0\.3 s"):
                ask(file)
        with pytest.raises(FileNotWrittenError, match="no answer within"):
            HdfsFileIO().create_exclusive(file, b"x")
