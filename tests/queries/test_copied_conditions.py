"""Conditions that Spark copies from a pruned scan to an equal column of another scan lose no row there.

Spark infers `g.k >= 5` from `f.k >= 5` and `f.k = g.k`, and the reader of `g` skips by it. So ranges of keys are pushed
only as far as storage of every such scan compares them rightly.
"""

from __future__ import annotations

import pytest

from pruning import PruningOptions, report
from sample_data.rows import Rows

pytestmark = pytest.mark.spark

HUGE = 123456789012
OPTIONS = PruningOptions(always=True, broadcast_strategy="NONE")


@pytest.fixture
def widened(spark, tmp_path) -> dict[str, str]:
    """Tables with a key of 12 digits: `f` in two files, `g` with a file of 4 digits, `d` with the keys 5 and `HUGE`."""
    names = {name: f"delta.`{tmp_path / name}`" for name in "fgd"}
    spark.sql(
        f"CREATE TABLE {names['g']} (k DECIMAL(4,0), v STRING) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO {names['g']} SELECT /*+ COALESCE(1) */ id, 'g' FROM range(1, 9001)")
    spark.sql(f"ALTER TABLE {names['g']} ALTER COLUMN k TYPE DECIMAL(12,0)")
    spark.sql(f"INSERT INTO {names['g']} VALUES (150000000000, 'h')")
    spark.sql(f"CREATE TABLE {names['f']} (k DECIMAL(12,0), w BIGINT) USING delta")
    spark.sql(f"INSERT INTO {names['f']} SELECT /*+ COALESCE(1) */ id, id FROM range(4)")
    spark.sql(f"INSERT INTO {names['f']} SELECT /*+ COALESCE(1) */ IF(id = 8, {HUGE}, id), id FROM range(5, 9)")
    spark.sql(f"CREATE TABLE {names['d']} (k DECIMAL(12,0), x INT) USING delta")
    spark.sql(f"INSERT INTO {names['d']} VALUES (5, 1), ({HUGE}, 1), (7, 2)")
    return names


# Failure catalogue 81: Spark cuts a literal to the width of the file's numbers, so `k <= HUGE` skips a file of `g`.
@pytest.mark.parametrize("max_in_list", [0, 500])
@pytest.mark.parametrize("key", ["g.k", "CAST(g.k AS DECIMAL(14,0))"])
def test_keys_with_more_digits_than_files_of_an_equal_column_lose_no_row(
    spark, widened, pruned_frame, max_in_list, key
):
    query = f"SELECT f.w, g.v FROM {{f}} f LEFT JOIN {{g}} g ON f.k = {key} JOIN {{d}} d ON f.k = d.k WHERE d.x = 1"
    df = spark.sql(query.format(**widened))
    result = pruned_frame(df, options=OPTIONS.with_limits(max_in_list=max_in_list))
    assert [(5, "g"), (8, None)] == sorted(map(tuple, df.collect()))
    assert Rows(df.collect()) == Rows(result.collect())
    assert {"f": (1, 2)} == {
        each.planned.table[-1]: _files(each) for each in report(result).tables if _files(each)[0] < 2
    }


# Delta stores bounds before 1973 without the seconds of the zone's offset, so ranges are moved out by a minute.
@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_ancient_timestamps_of_two_tables_skip_files_of_both(spark, tmp_path, pruned_frame, type_):
    f, g, d = (f"delta.`{tmp_path / name}`" for name in "fgd")
    for name, table in (("w", f), ("v", g)):
        spark.sql(f"CREATE TABLE {table} (k {type_}, {name} BIGINT) USING delta")
        for year in (1890, 1900, 1950):
            first = f"CAST('{year}-01-01 00:00:07.123456' AS {type_})"
            spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ {first} + id * INTERVAL 1 HOUR, id FROM range(9)")
    spark.sql(f"CREATE TABLE {d} (k {type_}, x INT) USING delta")
    spark.sql(f"INSERT INTO {d} VALUES ('1900-01-01 00:00:07.123456', 1), ('1950-01-01 00:00:08', 1), ('1890', 2)")
    df = spark.sql(f"SELECT f.w, g.v FROM {f} f LEFT JOIN {g} g ON f.k = g.k JOIN {d} d ON f.k = d.k WHERE d.x = 1")
    result = pruned_frame(df, options=OPTIONS)
    assert [(0, 0)] == sorted(map(tuple, result.collect()))
    assert Rows(df.collect()) == Rows(result.collect())
    found = {each.planned.table[-1]: _files(each) for each in report(result).tables}
    assert {"f": (2, 3), "g": (1, 3)} == {name: files for name, files in found.items() if files[1] == 3}


def _files(table) -> tuple[int, int]:
    return table.planned.files_kept, table.planned.files_total
