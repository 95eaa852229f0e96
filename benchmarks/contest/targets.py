"""The targets for pruned Spark, compared with the numbers of the recorded contests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.contest.pool import LIMIT
from benchmarks.contest.ratios import geometric_mean, saved
from sample_data.tpcds_queries import SELECTIVE
from sample_data.workload import WORKLOADS

Row = Mapping[str, Any]
Rows = Sequence[Row]
HEADER = ("what", "target", "reached", "")

TEN = frozenset(f"q{number}" for number in SELECTIVE)
_ALL = frozenset(f"q{number}" for number in range(1, 100))
_UNCLUSTERED = frozenset({"q96"})
_BLOOMS = "contest-blooms-sf10"
_LOCAL, _ONCE, _STORE, _APART = "contest-sf10", "contest-once-sf10", "contest-s3-sf10", "contest-apart-sf10"
_ANALYST, _PRUNE = "contest-analyst-sf8", "contest-prune-sf10"
_SLOWER, _SLOWER_SECONDS = 1.05, 0.15
_LEFT = 1.2
_MORE_BYTES = 1.02
_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Reached:
    """The recorded number for a target, in words, and `is_met`."""

    told: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class Target:
    """A target for queries of one layout in the recorded file `where`; `of` computes the number from their rows."""

    what: str
    asked: str
    of: Callable[[Rows], Reached | None]
    queries: frozenset[str] = TEN
    where: str = _LOCAL
    layout: str = "delta"

    def reached(self, found: Mapping[str, Rows]) -> Reached | None:
        """The recorded number; None unless all compared contenders answered all `queries`."""
        rows = [
            row
            for row in found.get(self.where, ())
            if row["layout"] == self.layout and row["query"] in self.queries and not row.get("failed")
        ]
        return self.of(rows) if _of(rows, "pruned").keys() == self.queries else None


def _names(workload: str) -> frozenset[str]:
    return frozenset(WORKLOADS[workload].names)


def lines(found: Mapping[str, Rows]) -> list[tuple[str, ...]]:
    """The lines of the table of targets, with the columns of `HEADER`."""
    return [(each.what, each.asked, *_told(each.reached(found))) for each in _TARGETS]


def _told(reached: Reached | None) -> tuple[str, str]:
    if reached is None:
        return "not measured", ""
    return reached.told, "met" if reached.is_met else "missed"


def _of(rows: Rows, contender: str) -> Mapping[str, Row]:
    """Rows of one contender by query."""
    return {row["query"]: row for row in rows if row["contender"] == contender}


def _beside(rows: Rows, other: str) -> Mapping[str, tuple[Row, Row]]:
    """Rows of pruned Spark and of another contender by query; empty unless both answered the same queries."""
    ours, theirs = _of(rows, "pruned"), _of(rows, other)
    return {query: (row, theirs[query]) for query, row in ours.items()} if ours.keys() == theirs.keys() else {}


def _mean(rows: Rows, field: str) -> float | None:
    """The geometric mean of a ratio; None if a query lacks the ratio."""
    ratios = [row.get(field) for row in _of(rows, "pruned").values()]
    return geometric_mean(ratios) if all(ratios) else None


def _at_most(field: str, most: float) -> Callable[[Rows], Reached | None]:
    def of(rows: Rows) -> Reached | None:
        mean = _mean(rows, field)
        return None if mean is None else Reached(f"{mean:.2f}", mean <= most)

    return of


def _times_faster(least: float) -> Callable[[Rows], Reached | None]:
    def of(rows: Rows) -> Reached | None:
        mean = _mean(rows, "seconds_to_stock")
        return None if mean is None else Reached(f"{1 / mean:.2f}x", 1 / mean >= least)

    return of


def _saved(field: str, least: float) -> Callable[[Rows], Reached | None]:
    def of(rows: Rows) -> Reached | None:
        share = saved(rows, field) if _beside(rows, "stock") else None
        if share is None:
            return None
        best = saved(rows, field, by=LIMIT) if _beside(rows, LIMIT) else None
        bound = "" if best is None else f" (the row-group limit: {best:.1%})"
        return Reached(f"{share:.1%}{bound}", share >= least)

    return of


def _none_slower(rows: Rows) -> Reached | None:
    """The query with the largest ratio to stock Spark's seconds; a slowdown below `_SLOWER_SECONDS` is ignored."""
    both = _seconds(rows)
    if not both:
        return None
    slow = slower(rows)
    worst = max(slow or both, key=lambda it: both[it][0] / both[it][1])
    ours, stock = both[worst]
    more = f", {len(slow)} slower" if slow else ""
    return Reached(f"{worst}: {ours / stock:.2f} ({ours - stock:+.2f} s){more}", not slow)


def slower(rows: Rows) -> Mapping[str, float]:
    """The ratios of queries slower than stock Spark by more than `_SLOWER` and `_SLOWER_SECONDS`, the worst first."""
    both = _seconds(rows).items()
    found = {it: ours / stock for it, (ours, stock) in both if ours > max(_SLOWER * stock, stock + _SLOWER_SECONDS)}
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def _seconds(rows: Rows) -> Mapping[str, tuple[float, float]]:
    return {query: (ours["seconds"], stock["seconds"]) for query, (ours, stock) in _beside(rows, "stock").items()}


def _none_left_to_always(rows: Rows) -> Reached | None:
    """The queries that every sound filter would make much faster than those which the default chooses."""
    both = _beside(rows, "always")
    if not both:
        return None
    more = {query: (ours["seconds"], other["seconds"]) for query, (ours, other) in both.items()}
    left = [query for query, (ours, every) in more.items() if ours > max(_LEFT * every, every + _SLOWER_SECONDS)]
    return Reached(f"{len(left)} faster: {', '.join(left)}" if left else "none faster", not left)


def _memory(most: float) -> Callable[[Rows], Reached | None]:
    """The largest difference of any query between the peak memory of pruned Spark and of stock Spark."""

    def of(rows: Rows) -> Reached | None:
        both = _beside(rows, "stock").values()
        if not both:
            return None
        more = max(ours["peak_bytes"] - stock["peak_bytes"] for ours, stock in both) / _MEGABYTE
        return Reached(f"{more:+,.0f} MB", more <= most)

    return of


def _none_reads_more(rows: Rows) -> Reached | None:
    """The query with the largest ratio to stock Spark's bytes, and the number of those beyond `_MORE_BYTES`."""
    ratios = {query: ours["bytes"] / stock["bytes"] for query, (ours, stock) in _beside(rows, "stock").items()}
    if not ratios:
        return None
    worst, more = max(ratios, key=ratios.__getitem__), sum(each > _MORE_BYTES for each in ratios.values())
    return Reached(f"{worst}: {ratios[worst]:.2f}, {more} read more", not more)


_NOT_SLOWER = "at most 1.05, or 0.15 s more"
_TARGETS = (
    Target("bytes of the ten queries to the row-group limit", "at most 1.10", _at_most("read_to_limit", 1.10)),
    Target("the same to DuckDB", "at most 1.0", _at_most("read_to_duckdb", 1.0)),
    Target("the same to DataFusion", "at most 1.0", _at_most("read_to_datafusion", 1.0)),
    Target("the ten, warm, times faster than stock Spark", "at least 2.4", _times_faster(2.4)),
    Target("the ten, files of 24 MB, times faster", "at least 2.1", _times_faster(2.1), layout="small_files"),
    Target(
        "the ten, Spark's bloom filters at low gates, times faster", "at least 2.1", _times_faster(2.1), where=_BLOOMS
    ),
    Target("the ten, warm, by prune()", "at least 2.4", _times_faster(2.4), where=_PRUNE),
    Target("the ten, once per session, times faster", "at least 1.9", _times_faster(1.9), where=_ONCE),
    Target("all 99, once: seconds of stock Spark saved", "at least 32 %", _saved("seconds", 0.32), _ALL, _ONCE),
    Target("all 99, once: times faster", "at least 2.1", _times_faster(2.1), _ALL, _ONCE),
    Target("all 99, once: bytes of stock Spark no longer read", "at least 72 %", _saved("bytes", 0.72), _ALL, _ONCE),
    Target("all 99, once: slowest to stock Spark", _NOT_SLOWER, _none_slower, _ALL, _ONCE),
    Target("all 99, warm, by prune(): slowest", _NOT_SLOWER, _none_slower, _ALL, _PRUNE),
    Target("all of `ssb`, warm: slowest", _NOT_SLOWER, _none_slower, _names("ssb"), "contest-ssb-sf5"),
    Target("all of `ssb`, once: slowest", _NOT_SLOWER, _none_slower, _names("ssb"), "contest-ssb-once-sf5"),
    Target("all of `events`, warm: slowest", _NOT_SLOWER, _none_slower, _names("events"), "contest-events-sf10"),
    Target("all of `events`, once: slowest", _NOT_SLOWER, _none_slower, _names("events"), "contest-events-once-sf10"),
    Target("all of `analyst`, warm: slowest", _NOT_SLOWER, _none_slower, _names("analyst"), _ANALYST),
    Target("all of `analyst`, warm: times faster", "at least 1.8", _times_faster(1.8), _names("analyst"), _ANALYST),
    Target(
        *("all of `analyst`: faster by every filter", "none by 1.20 and 0.15 s", _none_left_to_always),
        *(_names("analyst"), _ANALYST),
    ),
    Target("all 99, once: most bytes to stock Spark", "at most 1.02", _none_reads_more, _ALL, _ONCE),
    Target("unclustered keys only (q96), warm, times faster", "at least 1.8", _times_faster(1.8), _UNCLUSTERED),
    Target("the ten over the object store, times faster", "at least 4.5", _times_faster(4.5), where=_STORE),
    Target("date-partitioned, times faster", "at least 1.2", _times_faster(1.2), where=_PRUNE, layout="partitioned"),
    Target("date-partitioned, slowest", _NOT_SLOWER, _none_slower, where=_PRUNE, layout="partitioned"),
    Target("Z-ordered, times faster", "at least 1.2", _times_faster(1.2), where=_PRUNE, layout="zordered"),
    Target("Z-ordered, slowest", _NOT_SLOWER, _none_slower, where=_PRUNE, layout="zordered"),
    Target("peak memory above stock Spark's", "at most 300 MB", _memory(300), where=_APART),
)
