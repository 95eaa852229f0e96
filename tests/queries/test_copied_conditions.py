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


def _files(table) -> tuple[int, int]:
    return table.planned.files_kept, table.planned.files_total
