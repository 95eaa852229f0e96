from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.connectors.parquet_tables import by_name, columns, in_files, opened, pruned, scanned

pytestmark = pytest.mark.spark


def insert(spark, name: str, rows: str) -> None:
    spark.sql(f"INSERT INTO {name} VALUES {rows}")


@pytest.fixture
def catalog(spark) -> Iterator[Callable[[str], str]]:
    """A function that creates a temporary table from the text after `CREATE TABLE name`, and returns its name."""
    names: list[str] = []

    def create(definition: str) -> str:
        names.append(f"t_{uuid.uuid4().hex}")
        spark.sql(f"CREATE TABLE {names[-1]} {definition}")
        return names[-1]

    yield create
    for name in names:
        spark.sql(f"DROP TABLE {name}")


# Failure catalogue 75, 130, 131.
def test_files_of_other_schemas_are_read_by_the_table_schema(spark, tmp_path, catalog):
    source = in_files(
        tmp_path / "t",
        pa.table({"id": pa.array([1, 2], pa.int64()), "x": ["a", "b"]}),
        pa.table({"x": ["c"], "id": pa.array([3], pa.int32())}),
        pa.table({"ID": pa.array([4, 5], pa.int64())}),
        pa.table({"y": [1.0]}),
    )
    name = catalog(f"(id BIGINT, x STRING) USING parquet LOCATION '{source.as_uri()}'")
    table = opened(spark, name)
    null = "{} or NULL"
    assert {
        "0.parquet": ("{[1, 2]}", "{[a, b]}"),
        "1.parquet": ("{3}", "{c}"),
        "2.parquet": ("{[4, 5]}", null),
        "3.parquet": (null, null),
    } == by_name(table, "id", "x")
    for keys, expected in (([2**32 + 3], []), ([3, 4], [(3, "c"), (4, None), (5, None)]), ([None], [(None, None)])):
        kept = pruned(table, {"id": keys}).kept
        assert (expected, kept.sum()) == scanned(table.read(kept))[:2]


def test_missing_column_with_a_default_is_unknown(spark, catalog):
    name = catalog("(id BIGINT) USING parquet")
    insert(spark, name, "(1)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (x INT DEFAULT 7)")
    table = opened(spark, name)
    assert [("{1}", "all")] == list(by_name(table, "id", "x").values())
    kept = pruned(table, {"x": [7]}).kept
    assert [(1, 7)] == scanned(table.read(kept))[0]


def test_partitions_of_a_catalog_table_are_pinned(spark, catalog):
    name = catalog("(id INT, p INT) USING parquet PARTITIONED BY (p)")
    insert(spark, name, "(1, 1), (2, 2), (3, NULL)")
    table = opened(spark, name)
    insert(spark, name, "(10, 1), (20, 3)")
    assert [(1, 1), (2, 2), (3, None)] == scanned(table.read(None))[0]
    assert ([(1, 1), (3, None)], 2, 2) == scanned(table.read(pruned(table, {"p": [1, None]}).kept))
    assert 5 == opened(spark, name).read(None).count()


def test_char_columns_stay_padded(spark, catalog):  # failure catalogue 87
    name = catalog("(id INT, c CHAR(4)) USING parquet")
    insert(spark, name, "(1, 'x')")
    insert(spark, name, "(2, 'y')")
    table = opened(spark, name)
    assert [(2, "y   ")] == scanned(table.read(pruned(table, {"id": [2]}).kept))[0]
    assert ReasonCode.CHAR_PADDED is columns(table, "c")[0].refusal.code


def test_case_matters_in_case_sensitive_sessions(spark, tmp_path, catalog):  # failure catalogue 129
    both = in_files(tmp_path / "t", pa.table({"id": [1], "ID": [5]}))
    other = in_files(tmp_path / "u", pa.table({"ID": [5]}))
    name = catalog(f"(id BIGINT) USING parquet LOCATION '{other.as_uri()}'")
    assert [("{5}",)] == list(by_name(opened(spark, name), "id").values())
    with conf(spark, {"spark.sql.caseSensitive": "true"}):
        assert [("{1}",)] == list(by_name(opened(spark, both), "id", case_sensitive=True).values())
        assert [("{} or NULL",)] == list(by_name(opened(spark, name), "id", case_sensitive=True).values())
