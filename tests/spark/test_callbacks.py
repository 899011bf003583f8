"""Calls from the JVM to Python: apart from pyspark's own, and closed to other processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.native_lake import sqlite_conf
from tests.support.spark_sessions import run_python, session_conf

pytestmark = pytest.mark.nightly

DRIVER = """
import json, logging, socket, sys, threading, time
from pyspark import InheritableThread
from pyspark.sql import SparkSession
from iceberg_pyspark import install
from iceberg_pyspark.spark.bridge import java_classes, jvm

folder, conf, theirs_first = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "theirs first"
builder = SparkSession.builder.master("local[2]").appName("callbacks")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
gateway = spark.sparkContext._gateway
spark.range(10).write.parquet(folder + "/source")
seen = {}

def stream(look):
    source = spark.readStream.schema("id long").parquet(folder + "/source")
    source.writeStream.foreachBatch(look).trigger(availableNow=True).start().awaitTermination()

def counts(name):
    def look(batch, _number):
        found = [batch.count()]
        if name != "theirs":
            found.append(batch.join(batch.sparkSession.table("lake.db.t"), "id").count())
        seen[name] = found
    stream(look)

def server():
    return vars(gateway).get("_callback_server")

if theirs_first:
    counts("theirs")
else:
    # with no folder to keep classes in, their jar is gone once it is open
    java_classes.user_folder = lambda name: None
debug = folder + "/debug.log"
handler = logging.FileHandler(debug)
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.DEBUG)
session = install(spark)
logging.getLogger().setLevel(logging.WARNING)
assert session.is_native
assert install(spark) is session
if not theirs_first:
    assert server() is None, "installing opens no port to everybody"
port, _client = jvm._callbacks[gateway]

spark.sql("create namespace lake.db")
spark.sql("create table lake.db.t (id bigint, g bigint) partitioned by (g)")
spark.sql("insert into lake.db.t select id, id % 2 from range(5)")
spark.sql("update lake.db.t set g = 2 where id = 4")
spark.sql("create table lake.db.u as select id from lake.db.t")
counts("ours too")
assert server() is not None, "pyspark has opened its own for the stream"

def theirs(*lines):
    with socket.create_connection(("127.0.0.1", server().get_listening_port()), timeout=5) as to:
        to.sendall("".join(line + "\\n" for line in lines).encode())
        try:
            return to.makefile("rb").readline().decode()
        except ConnectionError:
            return "closed"

refused = theirs("c", port._target, "handle", "sscan.plan", "s{}", "e")
# of one of its two protocols pyspark's own server wants the token of the gateway
assert "Object ID unknown" in refused or refused == "closed", refused

def read():
    assert spark.table("lake.db.t").count() == 5

for _ in range(12):
    thread = InheritableThread(target=read)
    thread.start()
    thread.join()
del thread
deadline = time.monotonic() + 20
def open_connections():
    read()
    return [c for c in list(port._server.connections) if getattr(c, "socket", None) is not None]
while len(open_connections()) > 8 and time.monotonic() < deadline:
    threading.Thread(target=read).start()
    time.sleep(0.2)
seen["connections"] = len(open_connections())

made = spark.newSession()
for key, value in conf.items():
    if key.startswith("spark.sql.catalog."):
        made.conf.set(key, value)
seen["new session"] = made.table("lake.db.t").join(made.table("lake.db.u"), "id").count()
handles = [install(s).bridge.session_handle for s in (spark, made)]
assert len({*handles, spark._jsparkSession.sessionUUID()}) == 3

frame = made.table("lake.db.t").join(made.table("lake.db.u"), "id").filter("g = 1")
shown = [frame._jdf.queryExecution().toString(), frame._jdf.queryExecution().debug().toString()]
for mode in ("simple", "extended", "codegen", "cost", "formatted"):
    explain = made._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
    shown.append(frame._jdf.queryExecution().explainString(explain))
for statement in ("insert into lake.db.t values (9, 9)", "delete from lake.db.t where id = 1"):
    shown.append(made.sql("explain extended " + statement).first()[0])
install(made).uninstall()
session.uninstall()
assert not install(made.newSession()) is session
session = install(spark)
counts("installed again")
spark.stop()
assert port._token not in open(debug).read()
secrets = [port._token, port._target, *handles]
print(json.dumps({**seen, "secrets": secrets, "shown": json.dumps(shown)}))
"""


@pytest.mark.parametrize(("order", "pinned"), [("theirs first", "true"), ("ours first", "false")])
def test_streams_of_pyspark_and_requests_of_ours_have_their_own_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, pinned: str
) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", pinned)
    events = tmp_path / "events"
    events.mkdir()
    conf = {
        **session_conf(tmp_path),
        **sqlite_conf("lake", tmp_path, tmp_path / "lake"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    script = tmp_path / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    printed = run_python(script, str(tmp_path), json.dumps(conf), order)
    actual = json.loads(printed.splitlines()[-1])
    secrets, shown = actual.pop("secrets"), actual.pop("shown")
    assert actual.pop("connections") <= 8
    assert actual == {
        **({"theirs": [10]} if order == "theirs first" else {}),
        "ours too": [10, 5],
        "new session": 5,
        "installed again": [10, 5],
    }
    logged = "".join(p.read_text("utf-8") for p in events.rglob("*") if p.is_file())
    assert "lake.db.t" in logged
    assert "lake.db.t" in shown
    for secret in secrets:
        assert secret not in logged
        assert secret not in shown
