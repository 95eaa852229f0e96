"""All 99 queries of TPC-DS: pruned = stock Spark = DuckDB, and scans skip as recorded in `tpcds_scans.txt`.

Scans are recorded by the cost model with the fixed costs of builds divided by 100, as the tables have a hundredth of
the rows of scale 10. A third of the queries also have equal rows with every sound filter, whatever it costs.

`GOLDEN=write make test ARGS=tests/oracle/test_tpcds.py` records the scans; review the difference before you commit it.
`sample_data/tpcds_answers.py` has the rules for the comparison of rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as RemoteSession

from connectors.pipeline.records import record_of
from pruning import PruningOptions, explain, prune, report
from pruning.cost.rates import CostRates
from pruning.reasons import ReasonCode
from pruning.results.prune_report import PruneReport, TableReport
from sample_data import layout
from sample_data import tpcds as tpcds_files
from sample_data.confs import CODE_GENERATION, conf
from sample_data.decided import decided
from sample_data.layout import write_delta
from sample_data.tpcds import TpcdsFiles, generate
from sample_data.tpcds_answers import disagreement, disorder
from sample_data.tpcds_queries import QUOTED, SELECTIVE, Query, by_spark, duckdb_tables, queries, spark_tables
from tests.costs import ALWAYS
from tests.in_session import recorded_in_session
from tests.kept import kept_folder
from tests.session.server import Server, server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCANS = Path(__file__).with_name("tpcds_scans.txt")
# At a tenth of this scale, queries take the same time, and twice as many have no row.
SCALE = 0.1
FIXED_COSTS = replace(CostRates(), build_job=1.2e6, driver_build=0.25e6, planned_scan=0.05e6)
OPTIONS = PruningOptions().with_limits(costs=FIXED_COSTS, risked_seconds=0.001)
YEARS_OF_SALES = (1998, 2003)
NUMBERS = range(1, 100)
# One of the quick tier's queries among them.
ALL_FILTERS = range(1, 100, 3)
TROUBLE = {
    ReasonCode.PRUNING_FAILED,
    ReasonCode.BUILD_FAILED,
    ReasonCode.BUILD_TIMED_OUT,
    ReasonCode.STATISTICS_FAILED,
}


@dataclass(frozen=True, slots=True)
class Tpcds:
    """The queries, and the engines that answer them besides `prune()`.

    `stock` is a session that reads one source file per table, because listing the files of Delta tables takes Spark
    longer than all the rest.
    """

    duck: duckdb.DuckDBPyConnection
    stock: SparkSession
    queries: Mapping[int, Query]
    folders: Mapping[str, Path]


@pytest.fixture(scope="module")
def tpcds(spark, tmp_path_factory) -> Iterator[Tpcds]:
    made_by = [Path(__file__), *(Path(each.__file__) for each in (layout, tpcds_files))]
    folder, days = kept_folder("tpcds", made_by), tmp_path_factory.mktemp("days") / "date_dim.parquet"
    sources = with_days_of_sales(generate(SCALE, folder), days)
    with conf(spark, CODE_GENERATION):
        folders = write_delta(spark, sources, folder / "delta")
    stock = spark.newSession()
    with (
        spark_tables(spark, folders),
        spark_tables(stock, sources.paths, "parquet"),
        duckdb_tables(sources.paths) as duck,
    ):
        yield Tpcds(duck, stock, {each.number: each for each in queries()}, folders)


def with_days_of_sales(sources: TpcdsFiles, days: Path) -> TpcdsFiles:
    """Tables with a date dimension of the years of sales, so that its size relative to the facts is that of scale 1."""
    rows = pq.read_table(sources.paths["date_dim"])
    first, last = YEARS_OF_SALES
    year = rows.column("d_year")
    pq.write_table(rows.filter(pc.and_(pc.greater_equal(year, first), pc.less_equal(year, last))), days)
    return replace(sources, paths={**sources.paths, "date_dim": days})


@pytest.mark.quick(5)
@pytest.mark.parametrize("number", NUMBERS, ids="q{}".format)
def test_pruned_rows_equal_spark_and_duckdb(spark, tpcds, number):
    query = tpcds.queries[number]
    df = spark.sql(query.text)
    stock = by_spark(tpcds.stock.sql(query.text))
    result = prune(df, options=OPTIONS)
    check_answer(tpcds, query, stock, df, result)
    check_scans(number, result)
    again, record = recorded_in_session(spark, OPTIONS, lambda: by_spark(spark.sql(query.text)))
    assert "" == disagreement(query, tpcds.duck, stock, again)
    assert "" == disorder(query, df.columns, stock, again)
    assert graph_of(record_of(result)) == graph_of(record)
    assert decided(report(result)) == decided(PruneReport((), "") if record is None else record.report())
    if number in ALL_FILTERS:
        check_answer(tpcds, query, stock, df, prune(df, options=ALWAYS))


def graph_of(record) -> str:
    """The join graph of the plan that was read for a query; empty if none was."""
    plan = getattr(record, "plan", None)
    return "" if plan is None else str(plan.graph)


@pytest.fixture(scope="module")
def connect(tpcds, tmp_path_factory) -> Iterator[tuple[Server, RemoteSession]]:
    """A server of Spark Connect over the same tables, and the session of a client."""
    limits = {f"limits.{name}": getattr(OPTIONS.limits, name) for name in ("costs", "risked_seconds")}
    confs = {**limits, "cost_rates": "GIVEN", **CODE_GENERATION, QUOTED: "true", "spark.sql.shuffle.partitions": 2}
    arguments = ["--log", *(part for name, value in confs.items() for part in ("--conf", f"{name}={value}"))]
    arguments += [part for name, path in tpcds.folders.items() for part in ("--table", f"{name}={path}")]
    with server("connect", tmp_path_factory.mktemp("connect"), *arguments) as running:
        client = RemoteSession(running.url)
        yield running, client
        client.client.close()


@pytest.mark.full
@pytest.mark.parametrize("number", NUMBERS, ids="q{}".format)
def test_rows_of_a_client_of_connect_equal_spark_and_duckdb(tpcds, connect, number):
    running, client = connect
    before, query = len(running.told()), tpcds.queries[number]
    stock, df = by_spark(tpcds.stock.sql(query.text)), client.sql(query.text)
    found = by_spark(df)
    assert "" == disagreement(query, tpcds.duck, stock, found)
    assert "" == disorder(query, df.columns, stock, found)
    read = [each for each in running.told()[before:] if each.startswith("reads ")]
    assert files_read(expected_scans()[number]) == [int(each.split()[1].replace(",", "")) for each in read]


def files_read(scans: list[str]) -> list[int]:
    """The number of files that the line about a query names, by lines about its scans; empty if nothing is skipped."""
    counts = [(int(kept), int(whole)) for line in scans for kept, whole in re.findall(r"(\d+) of (\d+)", line)]
    files = [int(each) for line in scans for each in re.findall(r"(\d+) of \d+ files", line)]
    return [sum(files)] if any(kept != whole for kept, whole in counts) else []


def check_answer(tpcds, query, stock, df, result):
    """Equal rows in an equal order, no trouble, and no file read beside the planned ones."""
    pruned = by_spark(result)
    assert df.schema == result.schema
    # At this scale no ORDER BY has a tie at its LIMIT, so each query has one correct result.
    assert "" == disagreement(query, tpcds.duck, stock, pruned)
    assert "" == disorder(query, df.columns, stock, pruned)
    assert set() == TROUBLE & {each.code for each in explain(result).reasons}
    for each in report(result).tables:
        # A scan did not run if its rows are not needed, or if it reuses another scan's exchange.
        assert each.measured is None or each.planned.files_kept == each.measured.files_read


@pytest.mark.parametrize("number", SELECTIVE, ids="q{}".format)
def test_selective_queries_of_benchmarks_are_pruned(number):
    # Where the query joins the rows of a build, the build has read the pruned scans.
    found = "".join(expected_scans()[number])
    assert "nothing" not in found or "READ_BY_BUILD" in found


def check_scans(number, result):
    """Each filtered scan skips what the file says, or the file has the reason against a filter."""
    tables = report(result).tables
    reasons = sorted({each.code.name for each in explain(result).reasons})
    found = sorted(map(scan_line, tables)) or [f"nothing: {', '.join(reasons) or 'no join'}"]
    expected = expected_scans()
    if os.environ.get("GOLDEN") == "write":
        expected[number] = found
        SCANS.write_text("".join(map(block, sorted(expected.items()))), encoding="utf-8")
    assert expected[number] == found


def scan_line(table: TableReport) -> str:
    planned = table.planned
    columns = ", ".join(sorted({column for each in planned.filters for column in each.columns}))
    skipped = f"{planned.files_kept} of {planned.files_total} files"
    if planned.row_groups_total is not None:
        skipped += f", {planned.row_groups_kept} of {planned.row_groups_total} row groups"
    return f"{planned.table} by {columns}: {skipped}"


def expected_scans() -> dict[int, list[str]]:
    text = SCANS.read_text(encoding="utf-8") if SCANS.exists() else ""
    _, *parts = re.split(r"^q(\d+)$", text, flags=re.MULTILINE)
    return {
        int(number): [each.strip() for each in lines.strip().splitlines()]
        for number, lines in zip(parts[::2], parts[1::2], strict=True)
    }


def block(item: tuple[int, list[str]]) -> str:
    number, lines = item
    return "".join([f"q{number}\n", *(f"  {each}\n" for each in lines)])
