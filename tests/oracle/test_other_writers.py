"""Joins over files of other writers whose metadata is wrong, or means something else than that of Spark's writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from pruning import PruningOptions, report
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.connectors.hand_made import Struct, chunk, edit_footer, set_bounds, set_text, statistics
from tests.costs import ALWAYS, PLANNED_SCANS
from tests.oracle.lakes import Layout, data_files, write
from tests.oracle.other_writers import bounds_with_length, inverted_page_index

pytestmark = pytest.mark.spark

CLICKHOUSE, UNKNOWN = "ClickHouse version 26.3.3 (build 1f)", "another writer"
XITONGSYS = "parquet-go version latest"


def joined(df: DataFrame, column: str, *keys: object) -> DataFrame:
    """The rows of `df` with one of the keys, by a join with a small table that also has a row without the condition."""
    type_ = df.schema[column].dataType.simpleString()
    rows = [*((key, "y") for key in keys), (keys[0], "n")]
    small = df.sparkSession.createDataFrame(rows, f"{column} {type_}, flag string")
    return df.join(small.where("flag = 'y'"), column)


def check(
    pruned_frame, query: DataFrame, expected: int, files: tuple[int, int], options: PruningOptions = ALWAYS
) -> DataFrame:
    """The pruned query, after its rows are those of stock Spark and it read so many of its files."""
    rows = Rows(query.collect())
    assert expected == len(rows)
    result = pruned_frame(query, options=options)
    assert rows == Rows(result.collect())
    (table,) = report(result).tables
    assert files == (table.planned.files_kept, table.planned.files_total)
    assert files[0] == table.measured.files_read
    return result


def codes(result: DataFrame) -> set[ReasonCode]:
    return {reason.code for table in report(result).tables for reason in table.planned.reasons}


READS: dict[str, Callable] = {
    "a given schema": lambda spark, folder: spark.read.schema("k string").parquet(folder),
    "binaryAsString": lambda spark, folder: spark.read.parquet(folder),
}


# Failure catalogue 177: stock Spark pushes nothing to such a column, and no bound of it is believed.
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("options", [PruningOptions(), ALWAYS], ids=["default", "always"])
def test_strings_without_annotation_lose_no_row(pruned_frame, spark, conf, tmp_path, read, options):
    bounds_with_length(tmp_path / "t")
    if read == "binaryAsString":
        conf("spark.sql.parquet.binaryAsString", "true")
    df = READS[read](spark, str(tmp_path / "t"))
    query = joined(df, "k", "n0000005", "p0000007")
    rows = Rows(query.collect())
    assert 2 == len(rows)
    assert rows == Rows(pruned_frame(query, options=options).collect())


# Failure catalogue 176: an index inside of a file that contradicts its bounds.
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_page_indexes_of_writers_that_err_are_not_asked(pruned_frame, spark, tmp_path, format_):
    inverted_page_index(tmp_path / "t", CLICKHOUSE)
    if format_ == "delta":
        spark.sql(f"CONVERT TO DELTA parquet.`{tmp_path / 't'}`")
    df = spark.read.format(format_).load(str(tmp_path / "t"))
    files = (2, 4) if format_ == "parquet" else (4, 4)
    result = check(pruned_frame, joined(df, "k", "dddd", "fzzz"), 2, files)
    assert ReasonCode.WRONG_METADATA in codes(result)


# Failure catalogue 176: other files answer as they answer stock Spark for literals.
def test_page_indexes_of_other_writers_are_believed_as_for_a_literal(pruned_frame, spark, tmp_path):
    inverted_page_index(tmp_path / "t", UNKNOWN)
    df = spark.read.parquet(str(tmp_path / "t"))
    query = joined(df, "k", "dddd", "fzzz")
    literal = df.where("k = 'dddd' OR k = 'fzzz'")
    assert (2, len(literal.collect())) == (len(query.collect()), len(pruned_frame(query, options=ALWAYS).collect()))


# A key for each of eight files.
KEYS = [f"{letter}{end}" for letter in "defg" for end in (letter * 3, "zzz")]


# An outer join and a division let no key of `d` reach `p`; Spark copies the condition on `f.k` to it.
COPIES = """
SELECT t.k, w, n FROM (
  SELECT f.k, 10 / sum(f.v + 1) AS w, max(p.v) AS n FROM f LEFT JOIN p ON f.k = p.k GROUP BY f.k
  HAVING 10 / sum(f.v + 1) > 0
) t JOIN d ON t.k = d.k WHERE d.flag = 'y'
"""


# Failure catalogue 176: Spark copies a filter of ours to the files of another table.
@pytest.mark.parametrize("format_", ["parquet", "delta"])
@pytest.mark.parametrize("errs", [True, False])
def test_filters_are_not_copied_to_files_of_writers_that_err(pruned_frame, spark, tmp_path, format_, errs):
    keys = ", ".join(map(repr, KEYS))
    rows = spark.range(0, 400_000, 1, 8).selectExpr(f"array({keys})[int(id DIV 50000)] AS k", "id AS v")
    rows.write.format(format_).save(str(tmp_path / "f"))
    if errs:
        inverted_page_index(tmp_path / "p", XITONGSYS)
    else:
        spark.createDataFrame([(key, 2) for key in KEYS], "k string, v int").write.parquet(str(tmp_path / "p"))
    spark.createDataFrame([("dzzz", "y"), ("dzzz", "n")], "k string, flag string").write.parquet(str(tmp_path / "d"))
    for name, kind in {"f": format_, "p": "parquet", "d": "parquet"}.items():
        spark.read.format(kind).load(str(tmp_path / name)).createOrReplaceTempView(name)
    query = spark.sql(COPIES)
    (row,) = query.collect()
    assert 2 == row.n
    result = pruned_frame(query, options=replace(PLANNED_SCANS, broadcast_strategy="NONE"))
    assert [row] == result.collect()
    (table,) = report(result).tables
    assert "f" == table.planned.table
    assert (8 if errs else 1, 8) == (table.planned.row_groups_kept, table.planned.row_groups_total)


def scattered() -> pa.Table:
    values = [(at * 37 % 200) * 10 for at in range(200)]
    return pa.table({"id": range(200), "word": [f"w{value:05}" for value in values]})


def without_bits(path: Path) -> None:
    """Clears the bloom filters of a file, which then deny each value."""
    data = bytearray(path.read_bytes())

    def clear(metadata: Struct) -> None:
        for group, found in enumerate(metadata[4][1][1]):
            for column in range(len(found[1][1][1])):
                begin, length = (chunk(metadata, column, group)[field][1] for field in (14, 15))
                # The bits come last, after a header of less than 32 bytes.
                data[begin + 32 : begin + length] = bytes(length - 32)

    edit_footer(path, clear)
    path.write_bytes(bytes(data))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


# Failure catalogue 180: a join does not look at bloom filters of files, nor do the keys that are pushed.
def test_wrong_bloom_filters_are_not_asked(pruned_frame, spark, tmp_path):
    confs = {"parquet.bloom.filter.enabled": "true", "parquet.enable.dictionary": "false"}
    lake = write(spark, tmp_path / "t", "parquet", scattered(), Layout(file_rows=50, group_rows=25), confs=confs)
    for path in data_files(lake):
        without_bits(path)
    df = spark.read.parquet(str(tmp_path / "t"))
    assert 0 == df.where("word = 'w00370'").count()
    for keys in (["w00370"], ["w00370", "w01200"], [f"w{value:05}" for value in range(0, 500, 40)]):
        result = check(pruned_frame, joined(df, "word", *keys), len(keys), (4, 4))
        plan = result._jdf.queryExecution().optimizedPlan().toString()
        assert "EqualTo" not in plan


# Failure catalogue 180: Spark copies a list of values to equal columns, whose files may have such filters.
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_values_are_not_copied_to_files_with_bloom_filters(pruned_frame, spark, tmp_path, format_):
    # A dictionary is written only of values that repeat.
    repeated = scattered().take([at for at in range(200) for _ in range(4)])
    whole = write(spark, tmp_path / "f", format_, repeated, Layout(file_rows=200, group_rows=100)).whole()
    keys = spark.createDataFrame([("w00370", "y"), ("w01200", "y"), ("w00380", "n")], "word string, flag string")
    keys.write.parquet(str(tmp_path / "d"))
    small = spark.read.parquet(str(tmp_path / "d"))
    blooms = {"parquet.bloom.filter.enabled": "true", "parquet.enable.dictionary": "false"}
    for name, confs in {"healthy": {}, "p": blooms}.items():
        lake = write(spark, tmp_path / name, format_, scattered(), Layout(file_rows=50), confs=confs)
        for path in data_files(lake) if confs else ():
            without_bits(path)
        query = whole.join(lake.whole().select("word"), "word").join(small.where("flag = 'y'"), "word")
        rows = Rows(query.collect())
        assert 8 == len(rows)
        result = pruned_frame(query, options=replace(ALWAYS, broadcast_strategy="NONE"))
        assert rows == Rows(result.collect())
        found = next(each for each in report(result).tables if each.planned.table == "f")
        # By their dictionaries, two row groups have the keys.
        assert (800 if confs else 200) == found.measured.rows_scanned


def without_orders(created_by: str) -> Callable[[Struct], None]:
    def edit(metadata: Struct) -> None:
        metadata.pop(7)
        set_text(metadata, 6, created_by)
        for column in range(2):
            found = statistics(metadata, column)
            set_bounds(found, found[6][1], found[5][1])

    return edit


# Files of DuckDB before 1.5 say nothing of the order of their bounds; the reader of parquet-java believes them.
@pytest.mark.parametrize(
    ("column", "keys", "created_by", "kept"),
    [
        ("id", [15, 35], UNKNOWN, 2),
        ("word", ["w15", "w35"], "DuckDB version v1.3.0 (build 71c5c07cdd)", 2),
        ("word", ["w15", "w35"], UNKNOWN, 4),
    ],
)
def test_files_without_column_orders_are_skipped(pruned_frame, spark, tmp_path, column, keys, created_by, kept):
    for at in range(4):
        path = tmp_path / f"{at}.parquet"
        numbers = range(at * 10, at * 10 + 10)
        pq.write_table(pa.table({"id": numbers, "word": [f"w{each:02}" for each in numbers]}), path)
        edit_footer(path, without_orders(created_by))
    check(pruned_frame, joined(spark.read.parquet(str(tmp_path)), column, *keys), 2, (kept, 4))


# A file of only NaN is no broken one. Delta stores NaN as both of its bounds.
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_files_of_only_nan_are_no_failure(pruned_frame, spark, tmp_path, caplog, format_):
    for values in ([float("nan")] * 5, [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]):
        rows = spark.createDataFrame([(each,) for each in values], "x double").coalesce(1)
        rows.write.format(format_).mode("append").save(str(tmp_path / "t"))
    df = spark.read.format(format_).load(str(tmp_path / "t"))
    result = check(pruned_frame, joined(df, "x", 3.0), 1, (2, 4))
    assert ReasonCode.STATISTICS_FAILED not in codes(result)
    assert not [record for record in caplog.records if "less pruning" in record.getMessage()]
    check(pruned_frame, joined(df, "x", float("nan")), 5, (4, 4))
