"""Secrets are hidden in the commands and answers that py4j logs."""

from __future__ import annotations

import logging

import pytest

from iceberg_pyspark.spark.bridge.hidden_secrets import _Commands
from tests.support.secret_forms import new_secret


def logged_lines(*messages: str) -> list[str]:
    """Return the log lines of a thread's messages, in order."""
    commands = _Commands()
    records = [
        logging.LogRecord("py4j.clientserver", logging.DEBUG, "f", 1, m, (), None) for m in messages
    ]
    assert all(commands.filter(record) for record in records)
    return [record.getMessage() for record in records]


@pytest.mark.parametrize(
    "command",
    [
        "Command to send: c\no1\nset\nsspark.sql.catalog.lake.s3.sse.key\ns{}\ne\n",
        "Command to send: c\no1\noption\nsadls.connection-string\ns{}\ne\n",
        "Command to send: c\no1\nset\nsspark.sql.catalog.lake.uri\nspostgresql:me:{}@h\ne\n",
        'Command to send: c\no1\nparquetRelation\nro2\ns{{"fs.s3a.secret.key": "{}"}}\ni1\ne\n',
        "Command to send: c\no1\nsql\nsSET `a.token`=`{}`\nro2\ne\n",
        'Answer received: !ys{{"options":{{"jdbc.password":"{}"}}}}',
        "Answer received: !ysjdbc:oracle:thin:me/{}@h",
    ],
)
def test_no_argument_shows_a_secret(command: str) -> None:
    secret = new_secret()
    (line,) = logged_lines(command.format(secret))
    assert secret not in line
    assert "***" in line


def test_the_answer_to_a_key_is_hidden_and_no_other() -> None:
    get = "Command to send: c\no1\nget\nsspark.sql.catalog.lake.{}\ne\n"
    assert logged_lines(
        get.format("token"),
        "Answer received: !ysabc",
        get.format("type"),
        "Answer received: !yshadoop",
        # a pair from a map of all settings: one answer is its key, the next answer its value
        "Answer received: !ysspark.sql.catalog.lake.s3.sse.key",
        "Command to send: c\no2\n_2\ne\n",
        "Answer received: !ysabc\\ndef",
        "Answer received: !yro5",
    )[1::2] == [
        "Answer received: !ys***",
        "Answer received: !yshadoop",
        "Command to send: c\no2\n_2\ne\n",
        "Answer received: !yro5",
    ]
    assert logged_lines("Answer received: !ysa.token", "Answer received: !ysabc")[1].endswith(
        "!ys***"
    )


def test_what_is_no_secret_is_logged_as_it_is() -> None:
    line = "Command to send: c\no1\noption\nspath\nsdb.t\ns\ne\n"
    assert logged_lines(line) == [line]
