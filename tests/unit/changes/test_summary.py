"""The small pure parts of a commit: counting, waiting, merging, choosing ids."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.changes.manifest_changes import plan_merge
from iceberg_pyspark.changes.retry import RetryPolicy, commit_retry_policy, status_check_policy
from iceberg_pyspark.changes.summary import snapshot_summary
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestContent, ManifestFile
from iceberg_pyspark.spec.snapshots import Snapshot, snapshot_id_of


def a_file(content: FileContent = FileContent.DATA, rows: int = 2) -> DataFile:
    return DataFile(
        content=content, file_path=str(uuid4()), record_count=rows, file_size_in_bytes=10
    )


def summary(
    added: list[DataFile],
    removed: list[DataFile],
    parent: dict[str, str] | None,
    *,
    partition: str = "",
    partition_limit: int = 0,
) -> dict[str, str]:
    return snapshot_summary(
        "overwrite",
        added,
        removed,
        parent=None
        if parent is None
        else Snapshot(snapshot_id=1, timestamp_ms=1, summary=parent, manifest_list="l"),
        partition_path=lambda f: partition,
        partition_limit=partition_limit,
        manifest_counts={},
        properties={},
    )


def test_every_kind_of_file_is_counted() -> None:
    kinds = [FileContent.DATA, FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES]
    entries = summary([a_file(k) for k in kinds], [a_file(k, rows=1) for k in kinds], {})
    assert entries == {
        "operation": "overwrite",
        "added-files-size": "30",
        "removed-files-size": "30",
        "added-data-files": "1",
        "deleted-data-files": "1",
        "added-equality-delete-files": "1",
        "removed-equality-delete-files": "1",
        "added-position-delete-files": "1",
        "removed-position-delete-files": "1",
        "added-delete-files": "2",
        "removed-delete-files": "2",
        "added-records": "2",
        "deleted-records": "1",
        "added-position-deletes": "2",
        "removed-position-deletes": "1",
        "added-equality-deletes": "2",
        "removed-equality-deletes": "1",
        "changed-partition-count": "1",
    }


def test_partitions_are_summed_up_if_they_are_few() -> None:
    entries = summary([a_file()], [], {}, partition="p=1", partition_limit=1)
    assert entries["partition-summaries-included"] == "true"
    assert entries["partitions.p=1"] == "added-files-size=10,added-data-files=1,added-records=2"
    # An unpartitioned table has no partition to name.
    entries = summary([a_file()], [], {}, partition_limit=1)
    assert [key for key in entries if key.startswith("partitions.")] == []


def test_totals_go_on_where_the_parent_has_them_and_never_below_zero() -> None:
    """docs/conformance.md 97."""
    parent = {"total-records": "10", "total-data-files": "0", "total-files-size": "?"}
    entries = summary([a_file()], [a_file(), a_file()], parent)
    assert entries["total-records"] == "8"
    assert "total-data-files" not in entries
    assert "total-files-size" not in entries
    assert "total-delete-files" not in entries
    assert summary([], [], None)["total-records"] == "0"


def test_waits_double_up_to_the_longest_and_end() -> None:
    policy = RetryPolicy(num_retries=4, min_wait_ms=100, max_wait_ms=300, total_timeout_ms=1000)
    waits = [policy.wait_ms(n, elapsed_ms=0, jitter=0) for n in range(1, 6)]
    assert waits == [100, 200, 300, 300, None]
    assert policy.wait_ms(1, elapsed_ms=0, jitter=0.5) == pytest.approx(105)
    assert policy.wait_ms(2, elapsed_ms=1001, jitter=0) is None
    assert policy.wait_ms(1, elapsed_ms=1001, jitter=0) == 100, "one retry is always made"
    assert (
        RetryPolicy(num_retries=10_000, min_wait_ms=1, max_wait_ms=50, total_timeout_ms=1).wait_ms(
            9_999, elapsed_ms=0, jitter=0
        )
        == 50
    )


def test_by_default_commits_of_others_do_not_count() -> None:
    policy = commit_retry_policy({})
    waits = [policy.wait_ms(n, overtaken=n, elapsed_ms=0, jitter=0) for n in range(1, 7)]
    assert waits == [100, 200, 400, 800, 1_000, 500], "who has waited long comes sooner"
    assert policy.wait_ms(304, overtaken=304, elapsed_ms=1_000_000, jitter=1) == pytest.approx(
        20 / 3
    )
    assert policy.wait_ms(300, overtaken=296, elapsed_ms=0, jitter=0) is not None
    assert policy.wait_ms(300, overtaken=295, elapsed_ms=0, jitter=0) is None
    assert policy.wait_ms(300, overtaken=300, elapsed_ms=1_800_001, jitter=0) is None
    configured = commit_retry_policy({"commit.retry.num-retries": "4"})
    assert configured.wait_ms(5, overtaken=5, elapsed_ms=0, jitter=0) is None


def test_the_policy_comes_from_table_properties() -> None:
    assert commit_retry_policy({"commit.retry.num-retries": "7"}) == RetryPolicy(
        num_retries=7, min_wait_ms=100, max_wait_ms=60_000, total_timeout_ms=1_800_000
    )
    with pytest.raises(InvalidRequestError, match=r"commit\.retry\.max-wait-ms"):
        commit_retry_policy({"commit.retry.max-wait-ms": "soon"})


@given(st.uuids())
def test_snapshot_ids_are_not_negative_and_fit_in_64_bits(uuid: UUID) -> None:
    """docs/conformance.md 85."""
    assert 0 <= snapshot_id_of(uuid) < 2**63


def manifest(
    number: int, length: int, spec_id: int = 0, content: ManifestContent = ManifestContent.DATA
) -> ManifestFile:
    return ManifestFile(
        manifest_path=f"m{number}",
        manifest_length=length,
        partition_spec_id=spec_id,
        content=content,
        added_snapshot_id=1,
    )


def groups(manifests: list[ManifestFile], *, target: int, least: int) -> list[list[str]]:
    planned = plan_merge(manifests, target_size=target, min_count=least)
    return [[m.manifest_path for m in group] for group in planned]


def test_the_group_of_the_newest_manifest_waits_until_it_is_large_enough() -> None:
    three = [manifest(i, 10) for i in range(3)]
    assert groups(three, target=100, least=4) == [["m0"], ["m1"], ["m2"]]
    assert groups(three, target=100, least=3) == [["m0", "m1", "m2"]]


def test_manifests_are_packed_from_the_oldest_to_the_target_size() -> None:
    five = [manifest(i, 10) for i in range(5)]
    assert groups(five, target=20, least=2) == [["m0"], ["m1", "m2"], ["m3", "m4"]]


def test_specs_and_contents_are_never_merged_together() -> None:
    mixed = [
        manifest(0, 10),
        manifest(1, 10, spec_id=1),
        manifest(2, 10),
        manifest(3, 10, content=ManifestContent.DELETES),
        manifest(4, 10, spec_id=1),
    ]
    assert groups(mixed, target=100, least=2) == [["m0", "m2"], ["m1", "m4"], ["m3"]]


def test_a_commit_of_deletes_merges_no_data_manifests() -> None:
    deletes = [manifest(i, 10, content=ManifestContent.DELETES) for i in range(2)]
    data = [manifest(i, 10) for i in (2, 3)]
    older = [manifest(i, 10, spec_id=1) for i in (4, 5)]
    assert groups([*deletes, *data, *older], target=100, least=3) == [
        ["m0"],
        ["m1"],
        ["m2"],
        ["m3"],
        ["m4", "m5"],
    ]


@given(
    sizes=st.lists(st.integers(1, 30), max_size=20),
    target=st.integers(1, 60),
    least=st.integers(0, 5),
)
def test_merging_loses_no_manifest_and_keeps_to_the_target(
    sizes: list[int], target: int, least: int
) -> None:
    manifests = [manifest(i, size, spec_id=i % 2) for i, size in enumerate(sizes)]
    planned = plan_merge(manifests, target_size=target, min_count=least)
    assert sorted(m.manifest_path for g in planned for m in g) == sorted(
        m.manifest_path for m in manifests
    )
    for group in planned:
        assert len(group) == 1 or sum(m.manifest_length for m in group) <= target


def test_checks_of_an_unknown_commit_follow_the_table_and_end_after_their_total_timeout() -> None:
    names = ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms")
    values = (50, 3, 9, 400)
    properties = {f"commit.status-check.{n}": str(v) for n, v in zip(names, values, strict=True)}
    policy = status_check_policy(properties)
    assert policy == RetryPolicy(num_retries=50, min_wait_ms=3, max_wait_ms=9, total_timeout_ms=400)
    assert policy.wait_ms(40, elapsed_ms=400, jitter=0) == 9
    assert policy.wait_ms(40, elapsed_ms=401, jitter=0) is None
