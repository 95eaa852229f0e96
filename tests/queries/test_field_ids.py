"""Parquet files read by field id, in some of which the name of a column belongs to another one.

Spark's reader finds a column by its id, and the column of a predicate by its name.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from pruning import pruned_read, report
from sample_data.confs import conf
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.in_session import kept

pytestmark = pytest.mark.spark

FILES, ROWS = 6, 10
IDS = {"x": 1, "y": 2}


def of_id(number: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(number)}


@pytest.fixture
def swapped(spark, tmp_path):
    """A view: `x` counts the rows, `y` is 1000 more; every other file has the one under the name of the other."""
    folder = tmp_path / "swapped"
    folder.mkdir()
    for at in range(FILES):
        names = ["x", "y"] if at % 2 else ["y", "x"]
        fields = [
            pa.field(each, pa.int64(), metadata=of_id(number)) for each, number in zip(names, (1, 2), strict=True)
        ]
        x = pa.array(range(at * ROWS, (at + 1) * ROWS), pa.int64())
        pq.write_table(pa.table([x, pa.compute.add(x, 1000)], pa.schema(fields)), folder / f"{at}.parquet")
    fields = [StructField(name, LongType(), metadata={"parquet.field.id": number}) for name, number in IDS.items()]
    with conf(spark, {"spark.sql.parquet.fieldId.read.enabled": "true"}):
        spark.read.schema(StructType(fields)).parquet(str(folder)).createOrReplaceTempView("swapped")
        yield "swapped"
        spark.catalog.dropTempView("swapped")


@pytest.mark.parametrize("column", IDS)
@pytest.mark.parametrize("ways", [(23,), (3, 14, 23), (3, 4, 5, 6, 7, 8, 9)], ids=["one key", "three", "a range"])
def test_keys_of_a_column_found_by_id_skip_files_alone(spark, swapped, pruned_frame, column, ways):
    keys = [each + 1000 * (column == "y") for each in ways]
    chosen = spark.createDataFrame([(each,) for each in keys], f"{column} long").localCheckpoint()
    result = pruned_frame(spark.table(swapped).join(chosen, column).select("x", "y"), options=ALWAYS)
    assert Rows([(each, each + 1000) for each in ways]) == Rows([tuple(each) for each in result.collect()])
    assert [(swapped, len({each // ROWS for each in ways}))] == kept(report(result))
    read = pruned_read(spark, swapped, keys={column: keys}, options=ALWAYS)
    assert {(each, each + 1000) for each in ways} <= {tuple(each) for each in read.collect()}


@pytest.mark.parametrize("order", ["x", "y", "y DESC"])
def test_first_rows_by_a_column_found_by_id(spark, swapped, pruned_frame, order):
    result = pruned_frame(spark.sql(f"SELECT x, y FROM {swapped} ORDER BY {order} LIMIT 2"), options=ALWAYS)
    first = [FILES * ROWS - 1, FILES * ROWS - 2] if "DESC" in order else [0, 1]
    assert [(each, each + 1000) for each in first] == [tuple(each) for each in result.collect()]
    assert [(swapped, 1)] == kept(report(result))
