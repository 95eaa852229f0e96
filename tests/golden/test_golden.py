"""Golden files: a query, and the join graph and filter plan that are made of it.

`GOLDEN=write make test ARGS=tests/golden` writes what is found; read the difference before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from connectors.spark.plan_reader import SparkPlan
from pruning import PruningOptions
from pruning.query.filter_plan import FilterPlan
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Node
from pruning.query.plan_statistics import Sizes
from sample_data.confs import conf
from sample_data.dsdgen import load_tpcds
from sample_data.layout import FACTS
from sample_data.tpcds_queries import QUOTED

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
TPCDS = (3, 7, 10, 13, 19, 20, 24, 31, 32, 34, 64, 69, 71, 72, 77, 96, 98)
DATABASE = "golden"
# As large as tables of a warehouse, so that every gate lets pass what the shape of the query allows.
FACT_BYTES, DIMENSION_BYTES = 10 << 30, 10 << 20


@pytest.fixture(scope="module")
def tables(spark) -> Iterator[dict[int, str]]:
    """Empty tables of TPC-DS in a database of their own; the text of each query by its number."""
    with duckdb.connect() as connection:
        load_tpcds(connection)
        connection.execute("CALL dsdgen(sf = 0)")
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY table_name, column_index"
        ).fetchall()
        queries = dict(connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall())
    spark.sql(f"CREATE DATABASE {DATABASE}")
    spark.sql(f"USE {DATABASE}")
    try:
        for table in sorted({name for name, *_ in columns}):
            fields = ", ".join(f"{column} {_spark(type_)}" for name, column, type_ in columns if name == table)
            spark.sql(f"CREATE TABLE {table} ({fields}) USING parquet")
        spark.udf.register("python_function", lambda value: value, "int")
        with conf(spark, {QUOTED: "true"}):
            yield queries
    finally:
        spark.sql("DROP TEMPORARY FUNCTION IF EXISTS python_function")
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def _spark(type_: str) -> str:
    return {"VARCHAR": "STRING", "INTEGER": "INT"}.get(type_, type_)


def described(spark, query: str) -> str:
    """The join graph and the filter plan of a query, without what differs from run to run."""
    plan = SparkPlan.of(spark.sql(query))
    graph = JoinGraph.of(plan.root)
    sizes = {each.at: _bytes(each.table) for each in graph.relations}
    filters = FilterPlan.before_builds(
        graph, Sizes(sizes, sizes, ()), PruningOptions().with_limits(max_build_scan_bytes=1 << 30)
    )
    return f"{graph}\n\n{filters}\n"


def _bytes(table: str) -> int:
    return FACT_BYTES if table.rpartition(".")[2] in FACTS else DIMENSION_BYTES


def compare(path: Path, found: str) -> None:
    if os.environ.get("GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


@pytest.mark.parametrize("number", TPCDS)
def test_tpcds(spark, tables, number):
    compare(HERE / f"tpcds_q{number:02}.txt", described(spark, tables[number]).replace(f"{DATABASE}.", ""))


def test_every_query_of_tpcds_is_read(spark, tables):
    kinds: set[str] = set()
    for query in tables.values():
        kinds |= {node.kind for node in SparkPlan.of(spark.sql(query)).root.walk() if type(node) is Node}
    # What the walk knows nothing of, and stops at.
    assert {"Expand", "OneRowRelation"} == kinds


@pytest.mark.usefixtures("tables")
def test_rules(spark):
    path = HERE / "rules.txt"
    found = []
    for title, query in _rules(path.read_text(encoding="utf-8")):
        text = described(spark, query).rstrip("\n").replace(f"{DATABASE}.", "")
        found.append(f"# {title}\n{query}\n--\n{text}\n")
    compare(path, "\n\n".join(found))


def _rules(text: str) -> Iterator[tuple[str, str]]:
    """The title and the query of each block: `# title`, the query, `--`, what is expected."""
    for block in text.split("# ")[1:]:
        title, _, rest = block.partition("\n")
        yield title, rest.partition("\n--\n")[0].strip()
