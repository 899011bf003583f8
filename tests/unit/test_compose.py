"""Checks of docker-compose.yml that are possible without docker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import demo_services

ROOT = Path(__file__).resolve().parents[2]
_TAG = re.compile(r":[\w.-]*\d[\w.-]*$")

_OF_SERVICES = {
    *("image", "build", "command", "entrypoint", "environment", "volumes", "ports"),
    *("depends_on", "healthcheck"),
}
_CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return content


def test_compose_file_has_spark_rest_postgres_and_minio(compose: dict[str, Any]) -> None:
    expected = {"spark-master", "spark-worker", "rest", "postgres", "minio"}
    assert expected <= compose["services"].keys()


def test_compose_file_has_keys_of_the_specification_only(compose: dict[str, Any]) -> None:
    """Its JSON schema allows no other keys; `docker compose` refuses a file with a wrong one."""
    assert compose.keys() == {"x-spark", "services", "volumes"}
    for name, service in compose["services"].items():
        assert service.keys() <= _OF_SERVICES, name
        assert service.get("build", {}).keys() <= {"context", "dockerfile_inline"}, name
        check = service.get("healthcheck", {})
        assert check.keys() <= {"test", "interval"}
        waits = service.get("depends_on", {})
        for wait in waits.values() if isinstance(waits, dict) else ():
            assert wait["condition"] in _CONDITIONS, name


def test_docker_sees_whether_services_work(compose: dict[str, Any]) -> None:
    ending, checked_by_their_image = {"bucket"}, {"rest"}
    for name, service in compose["services"].items():
        if name not in ending | checked_by_their_image:
            assert service["healthcheck"]["test"][0] == "CMD", name
    user = compose["services"]["postgres"]["environment"]["POSTGRES_USER"]
    assert compose["services"]["postgres"]["healthcheck"]["test"][-1] == user


def test_images_of_others_have_a_version(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert "build" in service or _TAG.search(service["image"]), name


def test_ports_open_on_loopback_alone(compose: dict[str, Any]) -> None:
    ports = [p for service in compose["services"].values() for p in service.get("ports", ())]
    assert ports
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)


def test_services_and_volumes_that_are_named_are_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        assert services.keys() >= set(service.get("depends_on", ()))
        volumes = {v.partition(":")[0] for v in service.get("volumes", ())}
        assert compose["volumes"].keys() >= volumes


def test_files_copied_into_the_image_exist(compose: dict[str, Any]) -> None:
    dockerfile = compose["x-spark"]["build"]["dockerfile_inline"]
    sources = [s for line in re.findall(r"COPY (.+)", dockerfile) for s in line.split()[:-1]]
    assert sources
    for source in sources:
        assert list(ROOT.glob(source)), source
    extras = re.search(r"\.\[([\w,-]+)\]", dockerfile)
    assert extras is not None
    project = (ROOT / "pyproject.toml").read_text()
    for extra in extras[1].split(","):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def test_the_demo_and_the_cluster_reach_its_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    demo = demo_services._COMPOSE
    published = {p.rpartition(":")[0] for s in services.values() for p in s.get("ports", ())}
    assert {demo[key].partition("://")[2] for key in ("uri", "s3.endpoint")} <= published
    minio, rest = services["minio"]["environment"], services["rest"]["environment"]
    cluster = compose["x-spark"]["environment"]
    user, password = minio["MINIO_ROOT_USER"], minio["MINIO_ROOT_PASSWORD"]
    for credentials in (
        (demo["s3.access-key-id"], demo["s3.secret-access-key"]),
        (rest["CATALOG_S3_ACCESS__KEY__ID"], rest["CATALOG_S3_SECRET__ACCESS__KEY"]),
        (
            cluster["PYICEBERG_CATALOG__LAKE__S3__ACCESS_KEY_ID"],
            cluster["PYICEBERG_CATALOG__LAKE__S3__SECRET_ACCESS_KEY"],
        ),
    ):
        assert credentials == (user, password)
    warehouse = cluster["PYICEBERG_CATALOG__LAKE__WAREHOUSE"]
    assert warehouse == rest["CATALOG_WAREHOUSE"] == demo["warehouse"]
    assert f"lake/{warehouse.removeprefix('s3://').rstrip('/')}" in services["bucket"]["entrypoint"]
    for url in (rest["CATALOG_S3_ENDPOINT"], cluster["PYICEBERG_CATALOG__LAKE__S3__ENDPOINT"]):
        assert url == "http://minio:9000"
