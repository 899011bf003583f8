"""Each property of a catalog that the documentation names is shown, or hidden on purpose."""

from __future__ import annotations

import re
from pathlib import Path

from iceberg_pyspark.catalogs.catalog_properties import shown_properties
from iceberg_pyspark.redaction import MASK

GUIDE = Path(__file__).parents[3] / "docs" / "guide"
PAGES = ("catalogs.md", "rest-catalogs.md", "glue-and-hive.md", "catalogs-in-spark.md", "stores.md")
HIDDEN = {
    *("credential", "token", "header.<name>", "auth.custom.<argument>"),
    *("jdbc.password", "rest.auth.basic.password"),
    *("rest.access-key-id", "rest.secret-access-key", "rest.session-token"),
    *("glue.access-key-id", "glue.secret-access-key", "glue.session-token"),
    *("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.sse.key"),
    *("gcs.oauth2.token", "gcs.encryption-key"),
    *("adls.account-key", "adls.sas-token", "adls.sas-token.<account>", "adls.connection-string"),
    *("adls.client-secret", "adls.token"),
    "urn:ietf:params:oauth:token-type:jwt",
    # options of fsspec's file systems, of which any may be a password
    *("fsspec.sftp.username", "fsspec.sftp.password", "fsspec.sftp.host_key_policy", "hf.token"),
    # what a server sends beside a secret
    *("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at"),
    *("adls.sas-token-expires-at-ms.<account>", "client.refresh-credentials-endpoint"),
}
NO_PROPERTIES = {
    *("db.t", "df.write", "ice.load_table", "fs.defaultFS", "hadoop-gcp", "iceberg-warehouse"),
    # a value, fields of answers, options of writes
    "client:secret",
    *("remote-signing-config", "idempotency-key-lifetime", "native-writer-enabled"),
}
_NAME = re.compile(r"[a-z][\w:]*(?:[.-][\w<>:]+)+", re.IGNORECASE)
_FIRST = re.compile(r"\| (?:property[^|]*)?\|")
_SECOND = re.compile(r"\| `rest\.auth\.type` \|")


def documented_properties(page: str) -> set[str]:
    """Return the names in text and tables that have a dot or a dash, or begin a row of a table."""
    text = re.sub(r"```.*?```", "", (GUIDE / page).read_text(), flags=re.DOTALL)
    names = set()
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        if (second := _SECOND.match(table)) or _FIRST.match(table):
            cells = [row.split("|")[2 if second else 1] for row in table.splitlines()[2:]]
            names |= {
                n
                for cell in cells
                for n in re.findall(r"`([^`]+)`", cell)
                if n.islower() and " " not in n
            }
    names |= {n for n in re.findall(r"`([^`\n]+)`", text) if _NAME.fullmatch(n)}
    others = ("spark.sql.", "spark.catalog.", "iceberg_pyspark.", "catalog.", "com.", "org.")
    return {
        n
        for n in names - NO_PROPERTIES
        if n[0].isalpha() and not n.startswith(others) and not n.endswith("-<digest>")
    }


def test_documented_properties_are_shown_or_hidden_on_purpose() -> None:
    names = set().union(*map(documented_properties, PAGES))
    assert len(names) > 80
    shown = shown_properties(dict.fromkeys(names, "value"))
    assert {n for n in names if shown[n] == MASK} == HIDDEN
