"""DuckDB as an oracle holds tables of its own, and evaluates queries without filters from the keys of joins."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sample_data.plain_duckdb import load, load_file, plain_duckdb, table_names
from sample_data.rows import Rows, arrow_rows

ROWS = pa.table({"k": pa.array([3, None, 1], pa.int32()), "v": ["c", "n", None]})


def test_rows_are_copied_and_a_table_is_replaced(duck):
    load(duck, "t", ROWS)
    assert Rows(arrow_rows(ROWS)) == Rows(duck.execute("FROM t").fetchall())
    load(duck, "t", ROWS.slice(0, 1))
    assert [(3, "c")] == duck.execute("FROM t").fetchall()
    assert {"t"} == table_names(duck)
    assert [] == duck.execute("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall()


@pytest.mark.parametrize("columns", [None, {"v"}])
def test_a_file_is_copied_with_the_columns_that_are_asked_for(duck, tmp_path, columns):
    pq.write_table(ROWS, tmp_path / "t.parquet", row_group_size=1)
    load_file(duck, "t", tmp_path / "t.parquet", columns)
    expected = ROWS if columns is None else ROWS.select(["v"])
    assert Rows(arrow_rows(expected)) == Rows(duck.execute("FROM t").fetchall())


def test_a_database_in_a_file_keeps_its_tables(tmp_path):
    for _ in range(2):
        with plain_duckdb(tmp_path / "kept.duckdb", memory_limit="1GB") as connection:
            if not table_names(connection):
                load(connection, "t", ROWS)
            assert [(3,)] == connection.execute("SELECT count(*) FROM t").fetchall()


@pytest.mark.parametrize("plans_joins", [False, True])
def test_keys_of_a_join_filter_no_scan_and_one_thread_runs(plans_joins):
    with plain_duckdb(plans_joins=plans_joins) as connection:
        for name in ("t", "u"):
            load(connection, name, pa.table({"k": range(10_000)}))
        query = "SELECT count(*) FROM t JOIN (SELECT k AS j FROM u WHERE k BETWEEN 5 AND 9) ON k = j"
        plan = connection.execute(f"EXPLAIN ANALYZE {query}").fetchall()[0][1]
        assert "dynamic" not in plan.lower()
        assert [(5,)] == connection.execute(query).fetchall()
        assert [("1",)] == connection.execute("SELECT current_setting('threads')::VARCHAR").fetchall()


def test_joins_are_planned_where_tables_are_listed_with_commas():
    plans = []
    for plans_joins in (False, True):
        with plain_duckdb(plans_joins=plans_joins) as connection:
            load(connection, "t", pa.table({"k": [1]}))
            load(connection, "u", pa.table({"j": [1]}))
            plans.append(connection.execute("EXPLAIN SELECT * FROM t, u WHERE k = j").fetchall()[0][1])
    assert ["CROSS_PRODUCT" in plan for plan in plans] == [True, False]
