"""A class of the user's that authenticates requests, named in the user's configuration."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from iceberg_pyspark.catalogs.catalog_properties import configured_properties
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.command_line.application import app
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, UnsupportedFeatureError
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.rest_answers import EVENTS, configured, table_reply

HERE = __name__


class Manager:
    """A class with the method of PyIceberg's AuthManager."""

    def __init__(self, first_name: str, pin: str = "") -> None:
        if pin == "wrong-pin":
            raise ValueError(f"no such pin: {pin}")
        self.text, self.number = f"{first_name}:{pin}", 0

    def auth_header(self) -> str | None:
        self.number += 1
        return None if self.number == 2 else f"Own {self.text}:{self.number}"


class Own:
    """A class with the methods of our Authentication, which renews its header."""

    def __init__(self) -> None:
        self.number = 1

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        return {"X-Own": str(self.number)}

    def renew(self) -> bool:
        self.number += 1
        return True


class NoAuthentication:
    """A class of which an object must never be created."""

    def __init__(self, **_: str) -> None:
        raise AssertionError("created")


not_a_class = Manager("x")


@pytest.fixture
def server() -> Iterator[TestServer]:
    with http_server(configured(lambda _: table_reply())) as running:
        yield running


def auth(impl: str, **more: str) -> dict[str, str]:
    return {"auth.type": "custom", "auth.impl": impl, **more}


def test_the_class_of_a_file_gets_its_arguments(
    server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  lake:\n    uri: {server.uri}\n    auth:\n      type: custom\n"
        f"      impl: {HERE}.Manager\n      custom:\n        first_name: Ada\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__AUTH__CUSTOM__PIN", "1234")
    assert configured_properties("lake", os.environ)["auth.custom.first_name"] == "Ada"
    catalog = load_catalog("lake")
    catalog.load_table(EVENTS)
    catalog.load_table(EVENTS)
    sent = [r.headers.get("authorization") for r in server.requests]
    # the class is asked for every request
    assert sent == ["Own Ada:1234:1", None, "Own Ada:1234:3"]
    assert "1234" not in repr(catalog) + repr(catalog.properties)


def test_the_command_line_uses_the_class(server: TestServer) -> None:
    options = [f"{k}={v}" for k, v in auth(f"{HERE}.Own").items()]
    flags = [word for option in options for word in ("--property", option)]
    done = CliRunner().invoke(app, ["--uri", server.uri, *flags, "uuid", "db.events"])
    assert done.exit_code == 0, done.stderr
    assert {r.headers.get("x-own") for r in server.requests} == {"1"}


def test_a_refused_header_is_renewed() -> None:
    def answer(request: Request) -> Reply:
        return table_reply() if request.headers["x-own"] == "2" else Reply(401)

    with http_server(configured(answer)) as server:
        RestCatalog("lake", {"uri": server.uri, **auth(f"{HERE}.Own")}).load_table(EVENTS)
        assert [r.headers["x-own"] for r in server.requests] == ["1", "1", "2"]


def test_processes_that_only_read_a_table_need_no_class(server: TestServer) -> None:
    properties = {"uri": server.uri, **auth(f"{HERE}.Manager")}
    properties["auth.custom.first_name"] = "Ada-Lovelace"
    catalog = RestCatalog("lake", properties)
    loaded = catalog.load_table(EVENTS)
    sent = pickle.dumps((loaded, dict(loaded.config)))
    assert b"Manager" not in sent
    assert b"Ada-Lovelace" not in sent
    # a copy of the catalog, as for another process of the driver, creates its own object
    pickle.loads(pickle.dumps(catalog)).load_table(EVENTS)
    assert server.requests[2].headers["authorization"] == "Own Ada-Lovelace::1"


@pytest.mark.parametrize("place", ["defaults", "overrides", "table"])
def test_a_server_names_no_class(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "class_of_the_server.py").write_text("class Login:\n    auth_header = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    named = auth("class_of_the_server.Login", **{"auth.custom.pin": "1"})
    config = {place: named} if place != "table" else {}
    more = {"config": named} if place == "table" else None
    with http_server(configured(lambda _: table_reply(more=more), config)) as server:
        catalog = RestCatalog("lake", {"uri": server.uri, "token": "of-the-user"})
        loaded = catalog.load_table(EVENTS)
        catalog.load_table(EVENTS)
        assert {r.headers["authorization"] for r in server.requests} == {"Bearer of-the-user"}
    names = json.dumps([dict(catalog.properties), dict(loaded.config)])
    assert "auth." not in names
    assert "class_of_the_server" not in sys.modules


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"auth.type": "custom"}, r"auth\.impl = module\.Class"),
        (auth("Manager"), r"auth\.impl = module\.Class, not 'Manager'"),
        (auth("no_such_module.Login"), "no_such_module.Login' cannot be imported.*on the driver"),
        (auth(f"{HERE}.NoSuchClass"), "NoSuchClass' cannot be imported"),
        (auth(f"{HERE}.not_a_class"), "is not a class"),
        (auth(f"{HERE}.NoAuthentication"), "needs the method auth_header"),
        (auth("subprocess.Popen", **{"auth.custom.args": "x"}), "is not an authentication"),
        (auth(f"{HERE}.Manager"), "arguments none .TypeError.*first_name"),
        ({"auth.type": "basic", "auth.impl": f"{HERE}.Manager"}, "needs auth.type = custom"),
        ({"auth.type": "basic"}, "auth.basic.username"),
        ({"auth.type": "noop", "rest.auth.type": "none"}, "both set"),
    ],
)
def test_a_class_that_cannot_be_used_is_an_error(properties: dict[str, str], message: str) -> None:
    catalog = RestCatalog("lake", {"uri": "http://127.0.0.1:1", **properties})
    with pytest.raises(InvalidRequestError, match=message):
        catalog.load_table(EVENTS)


def test_pyicebergs_other_types(server: TestServer) -> None:
    login = {"auth.type": "basic", "auth.basic.username": "me", "auth.basic.password": "pw"}
    RestCatalog("lake", {"uri": server.uri, **login}).load_table(EVENTS)
    assert server.requests[-1].headers["authorization"] == "Basic bWU6cHc="
    noop = {"auth.type": "noop", "token": "unused"}
    RestCatalog("lake", {"uri": server.uri, **noop}).load_table(EVENTS)
    assert "authorization" not in server.requests[-1].headers
    other = RestCatalog("lake", {"uri": server.uri, "auth.type": "entra"})
    with pytest.raises(UnsupportedFeatureError, match=r"'entra' is not known here.*credential"):
        other.load_table(EVENTS)


def test_an_argument_that_the_class_repeats_is_not_shown() -> None:
    properties = auth(f"{HERE}.Manager", **{"auth.custom.first_name": "Ada"})
    properties["auth.custom.pin"] = "wrong-pin"
    catalog = RestCatalog("lake", {"uri": "http://127.0.0.1:1", **properties})
    with pytest.raises(IcebergError, match="no such pin") as raised:
        catalog.load_table(EVENTS)
    assert "wrong-pin" not in str(raised.value)
    assert raised.value.__cause__ is None
