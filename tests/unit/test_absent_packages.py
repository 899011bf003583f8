"""The test suite fails where it is required and a package of its tests is missing."""

from __future__ import annotations

import pytest

from tests import absent_packages

pytest_plugins = ("pytester",)

TESTS = {
    "test_of_file": """
        import pytest
        pytest.importorskip("no_such_package")
        def test_never_runs(): assert False
    """,
    "test_of_cases": """
        import pytest
        @pytest.fixture
        def package(): return pytest.importorskip("no_such_package")
        def test_by_fixture(package): pass
        def test_by_call(): pytest.importorskip("no_such_package")
        def test_for_another_reason(): pytest.skip("the superuser may enter every folder")
        def test_that_runs(): pass
    """,
}


@pytest.mark.parametrize(
    ("variable", "value", "required"),
    [
        ("ICEBERG_REQUIRE_SERVICES", "1", True),
        ("CI", "true", True),
        ("ICEBERG_REQUIRE_SERVICES", "0", False),
    ],
)
def test_a_missing_package_fails_where_services_are_required(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    required: bool,
) -> None:
    for name in ("ICEBERG_REQUIRE_SERVICES", "ICEBERG_REQUIRE_ORACLE", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    pytester.makepyfile(**TESTS)
    arguments = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:randomly")
    run = pytester.inline_run(
        *arguments, "--continue-on-collection-errors", plugins=[absent_packages]
    )
    of_tests = [report for report in run.getreports() if not report.passed]
    failed = sorted(report.nodeid.rpartition(":")[2] for report in of_tests if report.failed)
    skipped = sorted(report.nodeid.rpartition(":")[2] for report in of_tests if report.skipped)
    absent = ["test_by_call", "test_by_fixture", "test_of_file.py"]
    assert failed == (absent if required else [])
    assert skipped == sorted(["test_for_another_reason", *(() if required else absent)])
    assert run.ret == (pytest.ExitCode.TESTS_FAILED if required else pytest.ExitCode.OK)
