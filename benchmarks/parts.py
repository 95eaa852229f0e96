"""The parts of the benchmarks: their measurements, their targets, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.driver_chart import ALL
from benchmarks.phases_chart import PHASES

Row = Mapping[str, Any]
_SECONDS_OF = "seconds"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on `field` of the rows that agree with `where`."""

    what: str
    where: Mapping[str, Any]
    field: str
    relation: str
    bound: float

    def of(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that the target applies to."""
        return [row for row in rows if all(row.get(name) == value for name, value in self.where.items())]

    def reached(self, value: float) -> bool:
        """True if `value` is within the bound."""
        return value <= self.bound if self.relation == "<=" else value >= self.bound


@dataclass(frozen=True, slots=True)
class Growth:
    """A growth curve of `field` over `size`, one for each group of rows that agree in `by`."""

    size: str
    field: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One benchmark with its JSON file: `measure(quick)` returns the rows, a table shows their `columns`."""

    name: str
    title: str
    measure: Callable[[bool], list[dict[str, Any]]]
    columns: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    growth: tuple[Growth, ...] = ()


# Imports are inside the functions, so that a part that cannot be imported does not stop the others.


def _prune(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001 - the one argument of every part
    from benchmarks import bench_prune  # noqa: PLC0415

    return bench_prune.run({name: sizes[:2] for name, sizes in bench_prune.SIZES.items()} if quick else None)


def _keys(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_keys  # noqa: PLC0415

    return bench_keys.run((100_000, 300_000) if quick else bench_keys.SIZES)


def _filters(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_filters  # noqa: PLC0415

    return bench_filters.run(bench_filters.SIZES[:2] if quick else bench_filters.SIZES)


def _driver(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_driver  # noqa: PLC0415

    return bench_driver.run(quick=quick)


def _delta_log(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_delta_log  # noqa: PLC0415
    from connectors.spark.session import spark_session  # noqa: PLC0415

    sizes = (1_000, 3_000) if quick else bench_delta_log.SIZES
    return bench_delta_log.run(spark_session("scanprune benchmark"), sizes)


def _tpcds(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import tpcds_bytes  # noqa: PLC0415

    return tpcds_bytes.run(tpcds_bytes.QUICK if quick else tpcds_bytes.FULL)


def _planning(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_planning  # noqa: PLC0415

    return bench_planning.run(bench_planning.QUICK if quick else bench_planning.FULL)


def _phases(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_phases  # noqa: PLC0415

    return bench_phases.run(bench_phases.QUICK if quick else bench_phases.FULL)


def _cache(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_cache  # noqa: PLC0415

    return bench_cache.run(bench_cache.QUICK if quick else bench_cache.FULL)


def _memory(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_memory  # noqa: PLC0415

    return bench_memory.run(bench_memory.QUICK if quick else bench_memory.FULL)


def _session(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_session  # noqa: PLC0415

    return bench_session.run(bench_session.QUICK if quick else bench_session.FULL)


def _one_partition(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_one_partition  # noqa: PLC0415

    return bench_one_partition.run(*(bench_one_partition.QUICK if quick else bench_one_partition.FULL))


def _tuples(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_tuples  # noqa: PLC0415

    return bench_tuples.run(bench_tuples.QUICK if quick else bench_tuples.FULL)


def _merge(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import bench_merge  # noqa: PLC0415

    return bench_merge.run(bench_merge.QUICK if quick else bench_merge.FULL)


def _tpcds_queries(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks import tpcds_queries  # noqa: PLC0415

    return tpcds_queries.run(tpcds_queries.QUICK if quick else tpcds_queries.FULL)


def _contest(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    from benchmarks.contest import contest  # noqa: PLC0415

    return contest.run(contest.QUICK if quick else contest.FULL)


_GIB, _MIB = float(1 << 30), float(1 << 20)
_LATER = {"way": "prune()", "prunes": "from 200 to 1,000"}
_LATER_ENABLED = {"way": "enable()", "prunes": "from 400 to 2,000"}
_MOST = {"files": 1_000_000, "keys": 10_000_000}
_MOST_BYTES = 300.0 * _MIB
_BIGINTS = {"type": "bigint", "containers": 1_000_000}
_STRINGS = {"type": "string", "containers": 100_000}
_UPSERT = {"layout": "clustered", "share": 0.001, "way": "enabled"}


def _flat(what: str, rows: Mapping[str, Any]) -> tuple[Target, ...]:
    """The targets of what a session holds; Java's threads have none, since pools of Spark's own fill with use."""
    return (
        Target(f"heap added by {what}, bytes", rows, "heap_bytes", "<=", 16.0 * _MIB),
        Target(f"this process, {what}, bytes", rows, "python_bytes", "<=", 16.0 * _MIB),
        Target(f"objects kept in Java, {what}", rows, "java_objects", "<=", 10.0),
        Target(f"threads of this process, {what}", rows, "python_threads", "<=", 0.0),
    )


PARTS = (
    Part(
        "prune",
        "Deciding what to skip",
        _prune,
        ("operation", "type", "containers", "keys", "seconds", "seconds_median", "peak_bytes"),
        (
            Target("prune, 1,000,000 x 100,000 int64, s", {"operation": "prune", **_BIGINTS}, _SECONDS_OF, "<=", 1.0),
            Target("the same, peak bytes", {"operation": "prune", **_BIGINTS}, "peak_bytes", "<=", 1.5 * _GIB),
            Target("prune, 100,000 x 100,000 strings, s", {"operation": "prune", **_STRINGS}, _SECONDS_OF, "<=", 3.0),
            Target("compact, the same int64, s", {"operation": "compact", **_BIGINTS}, _SECONDS_OF, "<=", 2.0),
            Target("compact, the same strings, s", {"operation": "compact", **_STRINGS}, _SECONDS_OF, "<=", 2.0),
        ),
        (Growth("containers", _SECONDS_OF, ("operation", "type")),),
    ),
    Part(
        "filters",
        "Testing rows",
        _filters,
        ("filter", "items", "asked_fpp", "found_to_asked", "build_seconds", "tests_millions_per_second"),
        (
            Target("bloom, million int64 tests/s", {"filter": "bloom"}, "tests_millions_per_second", ">=", 20.0),
            Target("bloom, error / asked, 10 M keys", {"filter": "bloom", "items": 10**7}, "found_to_asked", "<=", 1.2),
        ),
        (Growth("items", "build_seconds", ("filter", "asked_fpp")),),
    ),
    Part(
        "keys",
        "Summarising keys",
        _keys,
        ("type", "keys", "limit", "arrival", "seconds", "distinct", "bytes"),
        (
            Target(
                "KeySummary, 10 M int64 keys, s",
                {"type": "bigint", "keys": 10**7, "limit": "within the limits", "arrival": "one array"},
                _SECONDS_OF,
                "<=",
                3.0,
            ),
        ),
        (Growth("keys", _SECONDS_OF, ("type", "limit", "arrival")),),
    ),
    Part(
        "driver",
        "What the driver does for one scan",
        _driver,
        (
            *("stage", "where", "type", "layout", "files", "keys", "seconds", "cpu_seconds", "peak_bytes"),
            *("whole_bytes", "sent_bytes"),
        ),
        (
            Target(
                "all of the driver, 1,000,000 files x 10,000,000 int64 keys, CPU s",
                {"stage": ALL, "type": "bigint", **_MOST},
                "cpu_seconds",
                "<=",
                10.0,
            ),
            Target(
                "the same, bytes above stock",
                {"stage": ALL, "type": "bigint", **_MOST},
                "peak_bytes",
                "<=",
                _MOST_BYTES,
            ),
        ),
        (
            Growth("files", "cpu_seconds", ("stage", "type", "layout", "keys")),
            Growth("keys", "cpu_seconds", ("stage", "type", "layout", "files")),
        ),
    ),
    Part(
        "delta_log",
        "Deciding from a Delta log",
        _delta_log,
        (
            *("files", "files_kept", "cold_seconds", "cold_cpu_seconds", "warm_seconds", "stock_seconds"),
            *("python_peak_bytes", "python_bytes", "heap_bytes"),
        ),
        (
            Target("100,000 files, cold, s", {"files": 100_000}, "cold_seconds", "<=", 10.0),
            Target("100,000 files, warm, s", {"files": 100_000}, "warm_seconds", "<=", 0.5),
        ),
        (Growth("files", "cold_seconds"), Growth("files", "warm_seconds")),
    ),
    Part(
        "tuples",
        "Ranges of two columns",
        _tuples,
        ("format", "layout", "shops", "pairs", "bytes_with", "bytes_without", "with_to_without"),
    ),
    Part(
        "tpcds_bytes",
        "Bytes of star joins on TPC-DS",
        _tpcds,
        (
            *("join", "format", "files_stock", "files", "bytes_stock", "bytes", "bytes_limit"),
            *("stock_to_pruned", "pruned_to_limit", "seconds_stock", "seconds", "rows_equal"),
        ),
    ),
    Part(
        "planning",
        "Planning queries of TPC-DS, without builds",
        _planning,
        (
            *("query", "nodes", "scans", "filters", "milliseconds", "milliseconds_read", "milliseconds_graph"),
            *("milliseconds_sizes", "milliseconds_feeds", "milliseconds_median", "milliseconds_most"),
        ),
        (
            Target("planning, median of 99 queries, ms", {"query": "all 99"}, "milliseconds_median", "<=", 80.0),
            Target("planning, most of 99 queries, ms", {"query": "all 99"}, "milliseconds_most", "<=", 300.0),
            Target("planning a join of 20, ms", {"query": "join of 20"}, "milliseconds", "<=", 1000.0),
            Target("planning a union of 50, ms", {"query": "union of 50"}, "milliseconds", "<=", 1000.0),
        ),
    ),
    Part(
        "phases",
        "Milliseconds of queries of TPC-DS until their first task",
        _phases,
        (
            *("query", "way", "milliseconds", "before_first_task", *PHASES, "run"),
            *("py4j_calls", "queries", "more_than_stock"),
        ),
        tuple(
            Target(
                f"more than stock in a session, {kind}, ms",
                {"query": f"median {kind}", "way": "session"},
                "more_than_stock",
                "<=",
                most,
            )
            for kind, most in (("of all", 0.0), ("without a build", 0.0), ("with builds", 120.0))
        ),
    ),
    Part(
        "cache",
        "Seconds of prune() with keys from a cache",
        _cache,
        ("query", "builds", "from_cache", "cache_bytes", "seconds", "seconds_cached", "cached_to_uncached"),
    ),
    Part(
        "merge",
        "MERGE with and without pruning",
        _merge,
        (
            *(
                "rows",
                "layout",
                "key",
                "share",
                "vectors",
                "way",
                "seconds",
                "search_seconds",
                "rewrite_seconds",
                "bytes",
            ),
            *("search_bytes", "files_searched", "files_rewritten", "stock_to_enabled_seconds"),
            *("stock_to_enabled_search_seconds", "stock_to_enabled_search_bytes", "rows_equal"),
        ),
        (
            Target("0.1 %, bytes of the search, times fewer", _UPSERT, "stock_to_enabled_search_bytes", ">=", 10.0),
            Target("the same, seconds, times fewer", _UPSERT, "stock_to_enabled_search_seconds", ">=", 5.0),
            Target(
                "nothing can be skipped, seconds to stock's",
                {"layout": "spread", "way": "enabled"},
                "stock_to_enabled_seconds",
                ">=",
                0.95,
            ),
        ),
    ),
    Part(
        "session",
        "Planning in an enabled session of queries with nothing to prune",
        _session,
        ("query", "stock_ms", "first_added_ms", "added_ms", "pruned"),
        (Target("median of the 99, milliseconds added", {"query": "median of 99"}, "added_ms", "<=", 5.0),),
    ),
    Part(
        "one_partition",
        "A query of one partition of a table of 10,000 files",
        _one_partition,
        ("files", "way", "query", "seconds", "jobs"),
    ),
    Part(
        "memory",
        "What a session holds after many prunes",
        _memory,
        (
            *("way", "prunes", "heap_bytes", "python_bytes", "java_objects", "java_threads", "python_threads"),
            "cached_rdds",
        ),
        (
            *_flat("800 prunes", _LATER),
            *_flat("1,600 queries of an enabled session", _LATER_ENABLED),
        ),
    ),
    Part(
        "tpcds_queries",
        "The 99 queries of TPC-DS by prune()",
        _tpcds_queries,
        (
            *("query", "scans", "scans_pruned", "reached_alone", "reached", "filters_alone", "filters"),
            *("files_stock", "files", "bytes_planned_stock", "bytes_planned", "query_bytes_stock"),
            *("query_bytes_pruned", "stock_to_pruned", "rows_equal"),
        ),
    ),
    Part(
        "contest-sf1",
        "Queries of TPC-DS: pruned Spark, stock Spark, DuckDB, DataFusion",
        _contest,
        (
            *("layout", "query", "contender", "bytes", "requests", "read_to_stock", "seconds", "seconds_to_stock"),
            *("cpu_seconds", "rows_equal", "failed"),
        ),
    ),
)
