"""Other processes get only the properties of the store that they need."""

from __future__ import annotations

import json
import pickle

import pytest

from iceberg_pyspark.storage.credentials.vended_credentials import (
    VENDED_CREDENTIALS,
    properties_of_store,
)
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.restricted_io import ReadRule, RestrictedFileIO
from tests.support.secret_forms import CATALOG_KEYS, STORE_KEYS, found_in, of_keys

VENDED = {
    "s3://b/t": {"s3.secret-access-key": "own-1"},
    "s3://b/t/data": {"s3.secret-access-key": "own-2", "adls.sas-token": "other-1"},
    "s3a://other/t": {"s3.secret-access-key": "other-2"},
    "gs://b/t": {"gcs.oauth2.token": "other-3"},
    "s3": {"s3.session-token": "own-3"},
    "gs://": {"gcs.oauth2.token": "other-4"},
    "not a location": {"s3.session-token": "other-5"},
}
CLOUDS = {
    "s3://b/t/metadata": "s3.",
    "s3a://b/t": "s3.",
    "gs://b/t": "gcs.",
    "abfss://c@acc.dfs.core.windows.net/t": "adls.",
    "hdfs://h/t": "hdfs.",
    "/folder/t": "none",
}


def restricted(location: str, properties: dict[str, str], rule: ReadRule) -> RestrictedFileIO:
    return RestrictedFileIO(
        # Any location works here; made-up properties open no Azure store.
        io=open_storage("/", properties),
        known_location=location,
        folders=(location,),
        hint="table t",
        rule=rule,
    )


@pytest.mark.parametrize("location", CLOUDS)
def test_secrets_of_the_own_store_alone_are_sent(location: str) -> None:
    secrets = of_keys((*STORE_KEYS, *CATALOG_KEYS))
    properties = {**secrets, "io.manifest.cache-enabled": "false"}
    sent = properties_of_store(location, properties)
    own = (CLOUDS[location], *(("client.secret-access-key",) if "s3" in location else ()))
    assert sent == {
        "io.manifest.cache-enabled": "false",
        **{k: v for k, v in secrets.items() if k.startswith(own)},
    }
    if location.startswith("hdfs"):
        return
    for rule in (ReadRule.OWN_STORE, ReadRule.OWN_FOLDERS):
        io = restricted(location, properties, rule)
        shipped = pickle.dumps(io).decode("latin-1")
        assert set(found_in(shipped, secrets)) == sent.keys() & secrets.keys()
        # The driver keeps all properties, and tasks have the same restrictions.
        assert set(found_in(repr(io.io.objects.properties), secrets)) == secrets.keys()  # type: ignore[attr-defined]
        again = pickle.loads(pickle.dumps(io))
        assert (again.folders, again.rule, again.hint) == (io.folders, io.rule, io.hint)
        assert again == pickle.loads(pickle.dumps(again))
    anywhere = pickle.dumps(restricted(location, properties, ReadRule.ANY_STORE)).decode("latin-1")
    assert set(found_in(anywhere, secrets)) == secrets.keys()


def test_store_gets_secrets_of_its_own_account_and_prefix_only() -> None:
    tokens = {
        "adls.sas-token.acc": "own",
        "adls.sas-token.acc.dfs.core.windows.net": "own",
        "adls.sas-token.other": "other",
        "adls.connection-string.acc2": "other",
    }
    properties = properties_of_store("abfss://c@acc.dfs.core.windows.net/t", tokens)
    assert properties == {k: v for k, v in tokens.items() if v == "own"}
    entries = [{"prefix": p, "config": c} for p, c in VENDED.items()]
    sent = properties_of_store("s3://b/t/metadata", {VENDED_CREDENTIALS: json.dumps(entries)})
    text = sent[VENDED_CREDENTIALS]
    assert [f"own-{n}" in text for n in (1, 2, 3)] == [True] * 3
    assert "other" not in text
    elsewhere = properties_of_store("gs://b9/t", {VENDED_CREDENTIALS: json.dumps(entries[:3])})
    assert elsewhere == {}
