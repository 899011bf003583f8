"""A Spark application with secrets in every place; it records all that a person could read.

It runs as a separate process, with its own settings and with this package's loggers at DEBUG.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import pickle
import traceback
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame

import iceberg_pyspark
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.spark.data_source.read_options import parse_table_options
from iceberg_pyspark.spark.data_source.reader import IcebergReader
from iceberg_pyspark.spark.data_source.source import IcebergDataSource
from iceberg_pyspark.spark.data_source.writer import IcebergWriter
from iceberg_pyspark.storage.open_storage import open_storage
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_answers import error
from tests.support.secret_forms import CATALOG_KEYS, STORE_KEYS, URI_FORMS, new_secret, of_keys
from tests.support.spark_sessions import start_session

_TABLE = "/v1/namespaces/db/tables/t"


@dataclass(frozen=True)
class Logins:
    """The server's answers; `metadata` is the content of a metadata file, at `location`."""

    location: str
    metadata: Mapping[str, Any]
    secrets: Mapping[str, str]
    """The secrets of all logins and answers, by their names."""

    def __call__(self, request: Request) -> Reply:
        match request.method, request.path:
            case _, "/v1/oauth/tokens":
                token = {"access_token": self.secrets["oauth2 token"], "token_type": "bearer"}
                return Reply(200, {**token, "expires_in": 3600})
            case _, "/v1/config":
                return Reply(200, {"defaults": {}, "overrides": {}})
            case "GET", path if path == _TABLE:
                return Reply(200, self._table())
        login = request.headers.get("authorization", "")
        return error(401, "NotAuthorizedException", f"no access with Authorization: {login}")

    def _table(self) -> dict[str, Any]:
        vended = {k: v for k, v in self.secrets.items() if k.startswith(("s3.", "adls.", "gcs."))}
        return {
            "metadata-location": self.location,
            "metadata": self.metadata,
            "config": {**vended, "token": self.secrets["token of the table"]},
            "storage-credentials": [{"prefix": "s3://bucket", "config": vended}],
        }


def login_secrets() -> dict[str, str]:
    """Return a new secret for each kind of login, and for each answer of the server."""
    logins = ["oauth2 secret", "oauth2 token", "bearer token", "token of the table", "header"]
    logins += ["sigv4 secret", "sigv4 session", "basic password"]
    vended = ["s3.access-key-id", "s3.secret-access-key", "s3.session-token"]
    vended += ["adls.sas-token.acc", "gcs.oauth2.token"]
    secrets = of_keys([*logins, *vended])
    # as the header of the request has it
    secrets["basic login"] = base64.b64encode(f"me:{secrets['basic password']}".encode()).decode()
    return secrets


def catalogs(uri: str, secrets: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the properties of one catalog for each kind of login at the server."""
    sigv4 = {
        "rest.access-key-id": new_secret(),
        "rest.secret-access-key": secrets["sigv4 secret"],
        "rest.session-token": secrets["sigv4 session"],
    }
    logins: dict[str, dict[str, str]] = {
        "oauth2": {
            "credential": f"me:{secrets['oauth2 secret']}",
            "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
        },
        "bearer": {"token": secrets["bearer token"]},
        "basic": {
            "rest.auth.type": "basic",
            "rest.auth.basic.username": "me",
            "rest.auth.basic.password": secrets["basic password"],
        },
        "sigv4": {"rest.sigv4-enabled": "true", "rest.signing-region": "r-1", **sigv4},
        "header": {"header.X-Api-Key": secrets["header"]},
    }
    return {name: {"type": "rest", "uri": uri, **login} for name, login in logins.items()}


def read_metadata(path: str) -> dict[str, Any]:
    """Return the content of a local metadata file."""
    with open(path, encoding="utf-8") as file:
        content: dict[str, Any] = json.load(file)
    return content


MODES = ("simple", "extended", "codegen", "cost", "formatted")
# the places where a secret is given: options, settings of the session, settings at the start,
# logins at a catalog, plans
PLACES = ("option", "session", "start", "login", "plan")


class Application:
    """The application; `shown` collects visible texts by the name of their place."""

    def __init__(self, folder: Path, secrets: Mapping[str, Mapping[str, str]], hiding: str) -> None:
        """Take `secrets` by `PLACES`, and `hiding`, the redaction regex that docs/ recommends."""
        self.folder = folder
        self.secrets = secrets
        self.shown: dict[str, str] = {}
        self._log = io.StringIO()
        logging.getLogger("iceberg_pyspark").addHandler(logging.StreamHandler(self._log))
        (folder / "events").mkdir()
        self.spark = start_session(
            folder,
            {
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": f"file://{folder / 'events'}",
                "spark.eventLog.compress": "false",
                "spark.redaction.regex": hiding,
                "spark.ui.enabled": "true",
                "spark.ui.port": "0",
                **_settings("atstart", secrets["start"]),
            },
        )
        logging.getLogger("iceberg_pyspark").setLevel(logging.DEBUG)
        log4j = self.spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
        for name in ("iceberg_pyspark", "org.apache.spark.sql.catalyst.analysis"):
            log4j.core.config.Configurator.setLevel(name, log4j.Level.DEBUG)

    def run(self) -> None:
        """Visit all places."""
        session = iceberg_pyspark.install(self.spark)
        assert session.is_native
        session.uninstall()
        self.reads_and_writes("portable")
        session = iceberg_pyspark.install(self.spark)
        self.reads_and_writes("native")
        self.views()
        self.catalog()
        self.settings()
        self.errors()
        self.logins()
        self.reprs()
        self.pages()
        self.shown["python log"] = self._log.getvalue()
        self.spark.stop()
        files = [f for f in (self.folder / "events").rglob("*") if f.is_file()]
        self.shown["event log"] = "".join(f.read_text("utf-8", "replace") for f in files)
        files = [f for f in (self.folder / "tables").rglob("*") if f.is_file()]
        self.shown["table files"] = "".join(f.read_text("latin-1") for f in files)

    def options(self) -> dict[str, str]:
        """Return the options of a table in a folder, with all secrets."""
        return {
            "catalog": "given",
            "catalog.type": "hadoop",
            "catalog.warehouse": str(self.folder / "tables"),
            **self.secrets["option"],
        }

    def reads_and_writes(self, path: str) -> None:
        """Read and write by options, on the driver and in tasks."""
        rows = self.spark.range(3)
        rows.write.format("iceberg-py").options(**self.options()).mode("append").save("db.t")
        frame = self.spark.read.format("iceberg-py").options(**self.options()).load("db.t")
        assert frame.where("id > 0").count() > 1
        self.explain(f"{path} read", frame.where("id > 0"))
        frame.createOrReplaceTempView(f"frame_{path}")
        self.explain_sql(f"{path} insert", f"INSERT INTO frame_{path} SELECT id FROM range(3)")

    def views(self) -> None:
        """Put options into the text of SQL."""
        arguments = ", ".join(f"`{k}` '{v}'" for k, v in self.options().items())
        text = f"TEMPORARY VIEW given USING `iceberg-py` OPTIONS (path 'db.t', {arguments})"
        self.explain_sql("view", f"CREATE {text}")
        self.spark.sql(f"CREATE {text}").collect()
        self.explain("view read", self.spark.table("given"))

    def catalog(self) -> None:
        """Query, write and change rows through a catalog that is configured by session settings."""
        for key, value in {
            **_settings("lake", self.secrets["session"]),
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(self.folder / "tables"),
        }.items():
            self.spark.conf.set(key, value)
            assert self.spark.conf.get(key) == value
        assert len(dict(self.spark.conf.getAll)) > len(self.secrets["session"])
        self.explain("lake read", self.spark.sql("SELECT * FROM lake.db.t WHERE id > 1"))
        self.spark.sql("SELECT count(*) FROM lake.db.t WHERE id > 1").collect()
        self.spark.sql("INSERT INTO lake.db.t VALUES (7)")
        self.spark.sql("DELETE FROM lake.db.t WHERE id = 7")
        with contextlib.suppress(Exception):
            secret = {"s3.sse.key": self.secrets["plan"]["s3.sse.key"]}
            self.explain("table options", self.spark.read.options(**secret).table("lake.db.t"))

    def settings(self) -> None:
        """Record what SQL shows of settings."""
        for key, value in self.secrets["plan"].items():
            # SET runs at once, and the UI shows its plan.
            self.spark.sql(f"SET `spark.sql.catalog.other.{key}`=`{value}`")
        for statement in ("SET", "SET -v"):
            self.shown[statement] = str(self.spark.sql(statement).collect())

    def errors(self) -> None:
        """Cause requests to fail, through Spark and without it."""
        read = self.spark.read.format("iceberg-py")
        options = self.options()
        path = f"ftp://me:{self.secrets['plan']['s3.sse.key']}@127.0.0.1:1/t"
        self.fails("unknown option", lambda: read.options(**options, nonsense="1").load("db.t"))
        self.fails("no table", lambda: read.options(**options).load("db.none").collect())
        self.fails("no store", lambda: read.options(**options).load(path).collect())
        self.fails("no table of lake", lambda: self.spark.table("lake.db.none"))
        remote = {**options, "s3.endpoint": "http://127.0.0.1:1", "s3.retry.num-retries": "1"}
        self.fails(
            "no bucket", lambda: open_storage("s3://bucket/t", remote).read_bytes("s3://bucket/t")
        )
        for number, form in enumerate(URI_FORMS):
            secret = self.secrets["plan"]["s3.sse.key"]
            uri = form.format(*(secret for _ in range(form.count("{}"))))
            arguments = {**options, "catalog.type": "sql", "catalog.uri": uri}
            self.fails(f"uri {number}", lambda g=arguments: load_catalog("x", **_of_catalog(g)))
            if number == 0:
                self.fails("uri by Spark", lambda g=arguments: read.options(**g).load("db.t"))
        for key, location in (
            ("s3.sse.type", "s3://b/t"),
            ("s3.connect-timeout", "s3://b/t"),
            ("gcs.encryption-key", "gs://b/t"),
            ("adls.account-host", "abfs://c/t"),
        ):
            odd = {**options, key: "odd"}
            self.fails(f"odd {key} {location}", lambda o=odd, at=location: open_storage(at, o))

    def logins(self) -> None:
        """Read a table by every kind of login at a REST catalog, and be refused another one."""
        table = load_catalog("x", **_of_catalog(self.options())).load_table(
            TableIdentifier(namespace=("db",), name="t")
        )
        content = read_metadata(table.metadata_location)
        with http_server(Logins(table.metadata_location, content, self.secrets["login"])) as at:
            for name, properties in catalogs(at.uri, self.secrets["login"]).items():
                for key, value in _settings(name, properties).items():
                    self.spark.conf.set(key, value)
                frame = self.spark.sql(f"SELECT * FROM {name}.db.t")
                assert frame.count() > 1
                self.shown[f"{name} plans"] = frame._jdf.queryExecution().toString()
                public = iceberg_pyspark.load_catalog(name, **properties)
                self.shown[f"{name} repr"] = f"{public!r} {public.load_table('db.t').loaded!r}"
                self.fails(f"{name} refused", lambda of=name: self.spark.table(f"{of}.db.none"))

    def fails(self, name: str, action: Any) -> None:
        """Record the error that a person sees when a request fails."""
        try:
            action()
        except Exception as e:  # noqa: BLE001 - of Spark, py4j and ours: all are shown
            text = "".join(traceback.format_exception(e))
            # A traceback may show our source line with the variable's name, but not its value.
            self.shown[f"error {name}"] = f"{e} {e!r} {text}"
            return
        raise AssertionError(f"{name} did not fail")

    def reprs(self) -> None:
        """Record the reprs of objects that hold secrets, also after pickling."""
        options = self.options()
        source = IcebergDataSource({**options, "path": "db.t"})
        schema = source.schema()
        catalog = load_catalog("x", **_of_catalog(options))
        loaded = catalog.load_table(catalog.list_tables(("db",))[0])
        reader, writer = source.reader(schema), source.writer(schema, False)
        assert isinstance(reader, IcebergReader)
        assert isinstance(writer, IcebergWriter)
        partitions = reader.partitions()
        # Spark pickles the writer twice: with the task function, and alone for the commit.
        pickled: Any = cloudpickle.dumps
        for name, sent in {"reader": reader, "tasks": partitions, "writer": writer}.items():
            shipped = pickled((lambda sent=sent: sent, schema))
            self.shown[f"shipped {name}"] = shipped.decode("latin-1")
        committing = pickle.loads(pickled(writer))
        assert committing._prepared.table == writer._prepared.table
        public = iceberg_pyspark.load_catalog("x", **_of_catalog(options))
        for holder in (
            *(source, source._pinned_table, reader, reader._io, reader._context, partitions),
            *(source.read_job(), writer, parse_table_options(source.options)),
            *(writer._prepared, catalog, catalog.properties, loaded),
            *(loaded.config, public, public.load_table("db.t"), public.load_table("db.t").io),
        ):
            self.shown[f"repr {type(holder).__name__} {len(self.shown)}"] = f"{holder!r} {holder}"
            with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError):
                self.shown[f"pickled {type(holder).__name__} {len(self.shown)}"] = repr(
                    pickle.loads(pickle.dumps(holder))
                )

    def pages(self) -> None:
        """Fetch pages of Spark's UI and of the REST API behind it."""
        context = self.spark.sparkContext
        rest = f"/api/v1/applications/{context.applicationId}"
        executions = json.loads(self.page(f"{rest}/sql?planDescription=true&length=1000"))
        for path in (
            *("/SQL/", "/environment/", "/jobs/", f"{rest}/environment", f"{rest}/jobs"),
            *(f"/SQL/execution/?id={one['id']}" for one in executions[-3:]),
        ):
            self.page(path)

    def page(self, path: str) -> str:
        """Fetch and record a page of the UI."""
        root = self.spark.sparkContext.uiWebUrl
        assert root is not None, "the UI is on"
        with urllib.request.urlopen(f"{root}{path}", timeout=30) as page:
            text: str = page.read().decode()
        self.shown[f"page {path}"] = text
        return text

    def explain(self, name: str, frame: DataFrame) -> None:
        """Record every form of explanation of a query."""
        for mode in MODES:
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                frame.explain(mode=mode)
            self.shown[f"{name} explained {mode}"] = shown.getvalue()
        execution = frame._jdf.queryExecution()
        self.shown[f"{name} plans"] = execution.toString() + repr(frame)

    def explain_sql(self, name: str, statement: str) -> None:
        """Record every form of explanation of a statement."""
        for mode in ("EXTENDED", "FORMATTED"):
            rows = self.spark.sql(f"EXPLAIN {mode} {statement}").collect()
            self.shown[f"{name} explained {mode}"] = str(rows)


def secrets_of_places() -> dict[str, dict[str, str]]:
    """Return a new secret for each key in each place that takes the key."""
    refused = ("gcs.oauth2.token",)
    keys = [k for k in STORE_KEYS if k not in refused]
    result = {
        "option": {**of_keys(keys), **of_keys(f"catalog.{k}" for k in CATALOG_KEYS)},
        "session": of_keys((*keys, *CATALOG_KEYS)),
        "start": of_keys((*keys, *CATALOG_KEYS)),
        "login": login_secrets(),
        "plan": of_keys(("s3.sse.key", "adls.connection-string", "uri")),
    }
    for place in ("session", "start", "plan"):
        secret = result[place].get("uri") or next(iter(of_keys(["uri"]).values()))
        result[place]["uri"] = f"postgresql://me:{secret}@h/db"
    return result


def _settings(catalog: str, properties: Mapping[str, str]) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{catalog}"
    return {prefix: "iceberg_pyspark", **{f"{prefix}.{k}": v for k, v in properties.items()}}


def _of_catalog(options: Mapping[str, str]) -> dict[str, str]:
    own = {k.removeprefix("catalog."): v for k, v in options.items() if k.startswith("catalog.")}
    return {**own, **{k: v for k, v in options.items() if not k.startswith("catalog")}}


def main(folder: Path, hiding: str) -> None:
    """Write the visible texts, and the secrets to search for, into `shown.json`."""
    secrets = secrets_of_places()
    application = Application(folder, secrets, hiding)
    application.run()
    result = {"secrets": secrets, "shown": application.shown}
    (folder / "shown.json").write_text(json.dumps(result), encoding="utf-8")
