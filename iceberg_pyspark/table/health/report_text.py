"""Formats a health report for people: as text, and as HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iceberg_pyspark.display import html_table, printable, utc_text
from iceberg_pyspark.table.health.figures import Bucket, HealthFigures, PartitionHealth

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_LONG = ("Table", "Growth", "Data files by deletes", "Partitions with most files")
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table of a report, with text cells; `numbers` are the indexes of numeric columns."""

    title: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()


def sections(health: HealthFigures) -> Iterator[Section]:
    """Yield the tables of a report, in reading order."""
    yield Section(title="Table", rows=_table(health))
    yield Section(
        title="What maintenance would gain",
        header=("procedure", "what it would do", "files", "after", "size"),
        rows=[
            (
                g.procedure,
                g.what if g.problem is None else f"not known: {g.problem}",
                number_text(g.files_before),
                ("at most " if g.is_upper_bound else "") + number_text(g.files_after),
                size_text(g.bytes),
            )
            for g in health.procedures
        ],
        numbers=frozenset({2, 3, 4}),
    )
    yield Section(title="Data files", rows=_file_sizes(health))
    yield Section(
        title="Data files by size",
        header=("size", "files", "bytes"),
        rows=[
            (size_range(b), number_text(b.files), size_text(b.bytes))
            for b in health.file_sizes.files_by_size
            if b.files
        ],
        numbers=frozenset({1, 2}),
    )
    yield Section(title="Deletes", rows=_deletes(health))
    yield Section(
        title="Delete files",
        header=("kind", "files", "bytes", "records", "dangling"),
        rows=[
            (
                kind,
                number_text(d.files),
                size_text(d.bytes),
                number_text(d.records),
                number_text(d.dangling_files),
            )
            for kind, d in (
                ("deletion vectors", health.deletes.deletion_vectors),
                ("position deletes", health.deletes.position_deletes),
                ("equality deletes", health.deletes.equality_deletes),
            )
            if d.files
        ],
        numbers=frozenset({1, 2, 3, 4}),
    )
    yield Section(
        title="Data files by deletes",
        header=("delete files", "data files", "bytes"),
        rows=[
            (count_range(b), number_text(b.files), size_text(b.bytes))
            for b in health.deletes.files_by_deletes
            if b.files
        ],
        numbers=frozenset({1, 2}),
    )
    partitions = health.partitions
    yield Section(title="Partitions", rows=_partitions(health))
    if partitions.count > 1:
        for title, lines in (
            ("Partitions with most bytes", partitions.largest),
            ("Partitions with most files", partitions.most_files),
        ):
            yield Section(
                title=title,
                header=("partition", "files", "small files", "bytes", "rows"),
                rows=[_partition(p) for p in lines],
                numbers=frozenset({1, 2, 3, 4}),
            )
    yield Section(title="Snapshots and metadata", rows=_metadata(health))
    yield Section(
        title="Growth",
        header=("committed", "rows", "data files", "delete files", "bytes"),
        rows=[
            (
                utc_text(s.committed_at_ms),
                number_text(s.records),
                number_text(s.data_files),
                number_text(s.delete_files),
                size_text(s.bytes),
            )
            for s in health.snapshots.history
        ],
        numbers=frozenset({1, 2, 3, 4}),
    )


def text_of(health: HealthFigures) -> str:
    """Return the report as text, with the recommended commands at the end."""
    lines = [printable(f"Health of {health.table}")]
    for section in sections(health):
        if section.title in _LONG or not section.rows:
            continue
        lines += ["", section.title, *_aligned_lines(section)]
    commands = [g for g in health.procedures if g.is_worthwhile]
    if commands:
        lines += ["", "Commands to run"]
        for gain in commands:
            lines.append(f"  {printable(gain.command)}")
            if gain.call is not None:
                lines.append(f"  {printable(gain.call)}")
    return "\n".join(lines)


def html_of(health: HealthFigures) -> str:
    """Return the report as HTML tables; all text is escaped."""
    parts = [html_table(s.title, s.header, s.rows) for s in sections(health) if s.rows]
    commands = [
        (g.procedure, g.command, "" if g.call is None else g.call) for g in health.procedures
    ]
    parts.append(html_table("Commands", ("procedure", "shell", "Spark SQL"), commands))
    return f"<div>{''.join(parts)}</div>"


def size_text(size: int | None) -> str:
    """Return a number of bytes in a suitable unit.

    >>> size_text(0), size_text(1023), size_text(1536), size_text(5 << 30), size_text(None)
    ('0 B', '1023 B', '1.5 KiB', '5.0 GiB', 'unknown')
    """
    if size is None:
        return "unknown"
    amount, unit = float(size), 0
    while abs(amount) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def number_text(number: int | None) -> str:
    """Return a number with thousands separators, or "unknown" for None."""
    return "unknown" if number is None else f"{number:,}"


def size_range(bucket: Bucket) -> str:
    """Return the size range of a bucket as text."""
    if bucket.less_than is None:
        return f"{_edge(bucket.at_least)} and more"
    if bucket.at_least == 0:
        return f"less than {_edge(bucket.less_than)}"
    return f"{_edge(bucket.at_least)} to {_edge(bucket.less_than)}"


def count_range(bucket: Bucket) -> str:
    """Return the count range of a bucket as text."""
    if bucket.less_than is None:
        return f"{bucket.at_least} and more"
    last = bucket.less_than - 1
    return str(last) if last == bucket.at_least else f"{bucket.at_least} to {last}"


def age_text(ms: int) -> str:
    """Return an age as text, in the largest unit of which there are at least two.

    >>> age_text(3 * 86_400_000), age_text(119_000), age_text(-1)
    ('3 days', '119 seconds', '0 seconds')
    """
    for unit, length in _MS.items():
        if ms >= 2 * length:
            return f"{ms // length} {unit}"
    return f"{max(ms, 0) // 1000} seconds"


def _edge(size: int) -> str:
    return size_text(size).replace(".0 ", " ")


def _table(health: HealthFigures) -> list[tuple[str, str]]:
    snapshot = "none" if health.snapshot_id is None else str(health.snapshot_id)
    return [
        ("table", health.table),
        ("location", health.location),
        ("format version", str(health.format_version)),
        ("current snapshot", snapshot),
        ("examined", utc_text(health.examined_at_ms)),
    ]


def _file_sizes(health: HealthFigures) -> list[tuple[str, str]]:
    sizes = health.file_sizes
    return [
        ("files", _with_size(sizes.files, sizes.bytes)),
        ("rows", number_text(sizes.records)),
        (
            "smallest, median, largest",
            ", ".join(map(size_text, (sizes.smallest, sizes.median, sizes.largest)))
            if sizes.files
            else "no file",
        ),
        (
            "target",
            f"{size_text(sizes.target)}: {size_text(sizes.min_file_size)} to "
            f"{size_text(sizes.max_file_size)}",
        ),
        ("too small", _with_size(sizes.small_files, sizes.small_bytes)),
        ("too large", _with_size(sizes.large_files, sizes.large_bytes)),
        (
            "formats",
            ", ".join(f"{name} {n:,}" for name, n in sizes.files_by_format.items()) or "none",
        ),
    ]


def _deletes(health: HealthFigures) -> list[tuple[str, str]]:
    deletes = health.deletes
    return [
        ("data files with deletes", number_text(deletes.data_files_with_deletes)),
        ("most deletes of one file", number_text(deletes.most_deletes_of_a_file)),
        ("rows deleted by position", f"at most {deletes.deleted_ratio:.1%}"),
        ("data files with many rows deleted", number_text(deletes.files_over_ratio)),
    ]


def _partitions(health: HealthFigures) -> list[tuple[str, str]]:
    partitions = health.partitions
    sizes = (partitions.median_bytes, partitions.mean_bytes, partitions.greatest_bytes)
    return [
        ("partitions with files", number_text(partitions.count)),
        ("median, mean, greatest", ", ".join(map(size_text, sizes))),
        ("skew", "unknown" if partitions.skew is None else f"{partitions.skew:.1f}"),
    ]


def _partition(p: PartitionHealth) -> tuple[str, ...]:
    counts = (number_text(p.files), number_text(p.small_files), size_text(p.bytes))
    return (p.partition or "(no partition)", *counts, number_text(p.records))


def _metadata(health: HealthFigures) -> list[tuple[str, str]]:
    snapshots, metadata, now = health.snapshots, health.metadata, health.examined_at_ms
    ages = [
        age_text(now - ms) for ms in (snapshots.oldest_ms, snapshots.newest_ms) if ms is not None
    ]
    return [
        ("snapshots", number_text(snapshots.count)),
        ("oldest and newest", " and ".join(ages) or "none"),
        ("branches, tags", f"{snapshots.branches}, {snapshots.tags}"),
        (
            "snapshot log, metadata log",
            f"{snapshots.log_entries:,}, {metadata.metadata_log_entries:,}",
        ),
        ("metadata file", size_text(metadata.metadata_bytes)),
        ("manifest list", size_text(metadata.manifest_list_bytes)),
        ("manifests", _with_size(metadata.manifests, metadata.manifest_bytes)),
        ("of them of deletes", number_text(metadata.delete_manifests)),
        (
            "median manifest, greatest, wanted",
            ", ".join(
                map(
                    size_text,
                    (
                        metadata.median_manifest_bytes,
                        metadata.greatest_manifest_bytes,
                        metadata.target_manifest_bytes,
                    ),
                )
            ),
        ),
        ("statistics files", _with_size(metadata.statistics_files, metadata.statistics_bytes)),
        (
            "of them of no snapshot",
            _with_size(
                metadata.unreferenced_statistics_files, metadata.unreferenced_statistics_bytes
            ),
        ),
    ]


def _with_size(files: int, size: int) -> str:
    return f"{files:,} ({size_text(size)})"


def _aligned_lines(section: Section) -> list[str]:
    rows = [[printable(cell) for cell in row] for row in (section.header, *section.rows) if row]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in section.numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(cells)}".rstrip())
    return lines
