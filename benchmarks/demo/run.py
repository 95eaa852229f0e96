"""The demo: generates TPC-DS tables, runs star joins with and without pruning, and checks every answer."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.demo.duckdb_answers import Oracle, oracle
from benchmarks.demo.star_join import Dimension, Lake, Run, StarJoin, run_pruned, run_stock
from connectors.cli.command import Report as Progress
from pruning.errors import EnvironmentProblem
from sample_data.layout import write_delta, write_parquet
from sample_data.tpcds import LEAST_SCALE, TpcdsFiles, generate

_BYTES_PER_SCALE = 1_200_000_000
_BYTES_AT_LEAST = 100_000_000
# The progress after each step, as a share of the whole; the joins take the rest.
_GENERATED, _WRITTEN, _LOADED = 0.25, 0.5, 0.55
# By default, queries are repeated as long as all joins together stay within this time.
_RUNS_AT_MOST, _SECONDS_FOR_JOINS = 3, 75.0


@dataclass(frozen=True, slots=True)
class Result:
    """One join on one format, before pruning and after; seconds are medians of `runs` alternating runs.

    The first run of each way warms up and is not timed, unless there is time for one run only.
    """

    join: StarJoin
    format: str
    before: Run
    after: Run
    seconds_before: float
    seconds_after: float
    runs: int
    rows_equal: bool


def results(spark: SparkSession, folder: Path, scale: float, runs: int | None, progress: Progress) -> Iterator[Result]:
    """Yields each join on each format as soon as it is measured; makes tables that are missing in `folder`.

    `runs`: timed runs of each query; None for as many as fit into `_SECONDS_FOR_JOINS`.
    """
    sources, lakes = made_tables(spark, folder, scale, TABLES, progress)
    progress("Loading the same rows into DuckDB", _WRITTEN)
    with oracle(sources.paths, JOINS) as judge:
        pairs = [(join, lake) for join in JOINS for lake in lakes]
        began = time.monotonic()
        for done, (join, lake) in enumerate(pairs):
            progress(f"{join.name}, {lake.format}", _LOADED + (1 - _LOADED) * done / len(pairs))
            until = began + _SECONDS_FOR_JOINS * (done + 1) / len(pairs)
            # The first query in a new JVM is always slow, so the first join has at least one more turn.
            yield compared(spark, lake, join, judge, _turns(runs, until, at_least=1 if done else 2))
    progress("Done", 1.0)


def _turns(runs: int | None, until: float, at_least: int) -> Iterator[int]:
    """Numbers of turns, the first of which warms up: `runs` more if given, else as many as the time allows."""
    for turn in range((runs or _RUNS_AT_MOST) + 1):
        if runs is None and turn >= at_least and time.monotonic() > until:
            return
        yield turn


def compared(spark: SparkSession, lake: Lake, join: StarJoin, judge: Oracle, turns: Iterable[int]) -> Result:
    """The result of a join that runs both ways in turns; rows of every run are checked."""
    before, after = [], []
    for _ in turns:
        before.append(run_stock(spark, lake, join))
        after.append(run_pruned(spark, lake, join))
    right = judge.rows(join)
    timed_before, timed_after = before[1:] or before, after[1:] or after
    return Result(
        join,
        lake.format,
        _measured_last(before),
        _measured_last(after),
        statistics.median(run.seconds for run in timed_before),
        statistics.median(run.seconds for run in timed_after),
        len(timed_before),
        rows_equal=all(run.rows == right for run in (*before, *after)),
    )


def _measured_last(runs: Sequence[Run]) -> Run:
    """The last run with complete measurements, since all runs read the same."""
    whole = [run for run in runs if run.measured is not None and run.measured.bytes_scanned is not None]
    return (whole or runs)[-1]


def check(folder: Path, scale: float) -> None:
    """Raises if the demo cannot run because of the scale, the folder, or the free space on its disk."""
    if not LEAST_SCALE <= scale <= 1000:
        raise ValueError(f"Cannot make TPC-DS at scale {scale:g}: it must be a number from {LEAST_SCALE} to 1000")
    _need_writable(folder)
    if (folder / f"parquet-sf{scale:g}" / FACT).exists():
        return
    needed, free = _BYTES_AT_LEAST + int(scale * _BYTES_PER_SCALE), shutil.disk_usage(folder).free
    if free < needed:
        raise EnvironmentProblem(
            f"TPC-DS at scale {scale:g} needs about {needed >> 20:,} MiB; {str(folder)!r} has {free >> 20:,} MiB free: "
            "name another folder with --dir, or a smaller --scale"
        )


def _need_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = error.strerror or str(error)
        raise EnvironmentProblem(
            f"Cannot keep tables in {str(folder)!r}: {why}; name another folder with --dir"
        ) from error


def made_tables(
    spark: SparkSession, folder: Path, scale: float, tables: Sequence[str], progress: Progress
) -> tuple[TpcdsFiles, tuple[Lake, ...]]:
    """The generated files, and their rows as Delta and as Parquet tables; made if `folder` lacks them."""
    half = (_WRITTEN - _GENERATED) / 2
    sources = generate(scale, folder, tables, _part(progress, 0, _GENERATED))
    lakes = []
    for at, (format_, write) in enumerate((("delta", write_delta), ("parquet", write_parquet))):
        target = folder / f"{format_}-sf{scale:g}"
        paths = write(spark, sources, target, _part(progress, _GENERATED + at * half, half))
        lakes.append(Lake(format_, {table: str(path) for table, path in paths.items()}))
    return sources, tuple(lakes)


def _part(progress: Progress, start: float, share: float) -> Progress:
    return lambda what, done: progress(what, start + share * done)


FACT = "store_sales"
TABLES = (FACT, "date_dim", "item", "store")

_SOLD_ON, _SOLD_IN, _SOLD = ("ss_sold_date_sk",), ("ss_store_sk",), ("ss_item_sk",)
_DAY, _STORE, _ITEM = ("d_date_sk",), ("s_store_sk",), ("i_item_sk",)
_MONTH = Dimension(_SOLD_ON, _DAY, "{date_dim}", "d_year = 2001 AND d_moy = 12")
_TICKETS = (17, 404, 1209, 2750, 3999, 4711, 5150, 6021, 7777, 8128, 9001, 11235)

JOINS = (
    StarJoin(
        "one month",
        "clustered by date: only the month's files are opened",
        FACT,
        "i_brand",
        "count(*) AS sold, sum(ss_ext_sales_price) AS price",
        (_MONTH, Dimension(_SOLD, _ITEM, "{item}")),
    ),
    StarJoin(
        "three keys",
        "dates skip files; stores and items thin out rows before the joins",
        FACT,
        "i_class",
        "count(*) AS sold, sum(ss_net_profit) AS profit",
        (
            _MONTH,
            Dimension(_SOLD_IN, _STORE, "{store}", "s_store_name = 'ought'"),
            Dimension(_SOLD, _ITEM, "{item}", "i_category = 'Music'"),
        ),
    ),
    StarJoin(
        "Christmas",
        "a range for each year; exact=True leaves no join to do",
        FACT,
        "ss_store_sk",
        "count(*) AS sold, sum(ss_net_paid) AS paid",
        (Dimension(_SOLD_ON, _DAY, "{date_dim}", "d_moy = 12 AND d_dom = 24"),),
        exact=True,
    ),
    StarJoin(
        "ticket list",
        "Python values; all files span them, dictionaries rule most out",
        FACT,
        "ss_ticket_number",
        "count(*) AS lines, sum(ss_net_paid) AS paid",
        (Dimension(("ss_ticket_number",), ("ticket",), values=_TICKETS),),
    ),
    StarJoin(
        "items alone",
        "sold on every day: nothing to skip, so planning is for nothing",
        FACT,
        "i_item_id",
        "count(*) AS sold, sum(ss_quantity) AS quantity",
        (Dimension(_SOLD, _ITEM, "{item}", "i_category = 'Books' AND i_class = 'travel'"),),
    ),
    StarJoin(
        "no store",
        "no keys, so nothing is read; stock Spark finds that out, too",
        FACT,
        "s_city",
        "count(*) AS sold",
        (Dimension(_SOLD_IN, _STORE, "{store}", "s_store_name = 'closed long ago'"),),
    ),
)
