"""Every form of a secret is shown and then searched for."""

from __future__ import annotations

import logging
import pickle
import traceback
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.redaction import (
    get_logger,
    harmless_cause,
    is_secret_key,
    redact_properties,
    redact_text,
    redact_uri,
    secret_values,
    without_secrets,
)
from tests.support.secret_forms import (
    CATALOG_KEYS,
    OTHER_KEYS,
    STORE_KEYS,
    TEXT_FORMS,
    URI_FORMS,
    filled,
    found_in,
    new_secret,
    of_keys,
)

NO_SECRETS = (
    "cannot read s3://bucket/t/data/token=abc/secret_level=2/f.parquet: no such file",
    "abfss://container@acc.dfs.core.windows.net/t/f.parquet",
    "cannot open http://h:9000/a@b",
    "sqlite:////home/me@here/catalog.db",
    "jdbc:oracle:thin:@//h:1521/x",
    "column token: string is not a long",
    "adls.token is not supported; use adls.sas-token or a key",
    "unknown read option 's3.sse.kee'; known: token, password, path",
    "storage property s3.signer is not supported: sign requests with keys (s3.access-key-id)",
    "Project [token#1, secret#2], Filter (token#1 = 5), struct<token:string,password:int>",
)


@pytest.mark.parametrize("form", URI_FORMS)
def test_no_form_of_a_uri_shows_its_secret(form: str) -> None:
    uri, secret = filled(form)
    for text in (
        redact_uri(uri),
        str(redact_properties({"uri": uri, "warehouse": uri})) if "/x@" not in form else "",
        redact_text(f"cannot open '{uri}': refused"),
        str(InvalidRequestError(f"catalog uri {uri} is wrong")),
    ):
        assert secret not in text
    assert uri.partition(":")[0] in redact_uri(uri)


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_no_form_of_a_text_shows_its_secret(form: str) -> None:
    text, secret = filled(form)
    for message in (text, f"failed: {text}", f"{text}\n{text}"):
        assert secret not in redact_text(message)


@pytest.mark.parametrize("key", [*CATALOG_KEYS, *STORE_KEYS, *OTHER_KEYS])
def test_no_value_of_a_credential_is_shown(key: str) -> None:
    (secret,) = of_keys([key]).values()
    assert is_secret_key(key)
    for properties in ({key: secret}, {f"spark.sql.catalog.lake.{key}": secret}):
        (name,) = properties
        assert name in str(redact_properties(properties))
        assert secret not in str(redact_properties(properties))
        assert secret in secret_values(properties)
        for spelling in (str(properties), f"{name}={secret}", f"{name} -> {secret}"):
            assert secret not in redact_text(spelling)


@pytest.mark.parametrize("text", NO_SECRETS)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert redact_text(text) == text


PIECES = st.sampled_from(
    [
        *(
            "password",
            "token",
            "sig",
            "s3.sse.key",
            "Authorization",
            "postgresql",
            "jdbc:",
            "Bearer",
        ),
        *("=", ":", "://", "@", "'", '"', " ", "->", ",Some(", "thin:", "***", "me", "/", "?", ";"),
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
@example("postgresql:me:pw@h")
@example("jdbc:oracle:thin:@h")
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once
    assert redact_uri(redact_uri(text)) == redact_uri(text)


def test_an_error_of_ours_has_no_secret_even_pickled() -> None:
    for form in (*URI_FORMS, *TEXT_FORMS):
        text, secret = filled(form)
        error = pickle.loads(pickle.dumps(IcebergError(f"cannot: {text}")))
        assert secret not in f"{error} {error!r} {error.args}"


def test_secrets_of_a_uri_are_found_wherever_a_library_repeats_them() -> None:
    for uri in ("postgresql://me:p%40ssword@h/db", "jdbc:oracle:thin:me/p%40ssword@h"):
        secrets = secret_values({"uri": uri})
        assert without_secrets("no p@ssword, p%40ssword", secrets) == "no ***, ***"
    assert secret_values({"uri": "sqlite:////a:b@c/catalog.db", "token": "true"}) == ()


def test_a_cause_that_shows_a_secret_is_left_out() -> None:
    properties = of_keys(STORE_KEYS)
    secrets = secret_values(properties)
    messages = properties["s3.secret-access-key"]
    for inner in (ValueError(f"odd: {messages}"), ValueError(("a", messages))):
        outer = RuntimeError("not told")
        outer.__context__ = inner
        assert harmless_cause(inner, secrets) is None
        assert harmless_cause(outer, secrets) is None
        outer.__suppress_context__ = True
        assert harmless_cause(outer, secrets) is outer
        with pytest.raises(IcebergError) as caught:
            raise IcebergError("cannot") from harmless_cause(inner, secrets)
        text = "".join(traceback.format_exception(caught.value))
        assert found_in(text, properties) == []
    assert harmless_cause(ValueError("password=abc")) is None
    assert harmless_cause(None) is None


def test_a_logger_of_ours_redacts_messages_and_tracebacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = get_logger("iceberg_pyspark.test_redaction")
    assert get_logger(log.name) is log
    assert len(log.filters) == 1
    secret = new_secret()
    log.warning("headers: %s", {"Authorization": secret})
    log.warning("not deleted: %s", f"ftp://me:{secret}@h/t")
    for text in (f"postgresql://me:{secret}@h", "plain"):
        try:
            raise ValueError(text)
        except ValueError:
            log.exception("failed")
    assert caplog.messages[:2] == [
        "headers: {'Authorization': '***'}",
        "not deleted: ftp://***@h/t",
    ]
    assert "ValueError: postgresql://***@h" in caplog.text
    assert "ValueError: plain" in caplog.text
    assert secret not in caplog.text


def test_arguments_that_do_not_fit_are_left_to_the_handler() -> None:
    log = get_logger("iceberg_pyspark.test_redaction")
    record = log.makeRecord(log.name, logging.WARNING, "f", 1, "%d %d", ("x",), None)
    assert log.filter(record)
    assert record.args == ("x",)


def test_every_logger_of_the_package_redacts() -> None:
    for file in (Path(__file__).parents[2] / "iceberg_pyspark").rglob("*.py"):
        text = file.read_text("utf-8")
        assert "getLogger(__name__)" not in text, f"{file}: use get_logger"
