"""A build runs only if it takes less time than its keys are expected to save, before the keys are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning import explain
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.costs import NO_FIXED_COSTS
from tests.queries.star import FILES, OPTIONS, files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

# Every file has every item, and twelve of fifty items pass; nothing tells how many texts are below one.
BY_ITEM = "SELECT s.* FROM {sales} s JOIN {items} i ON s.item = i.item WHERE name < 'n2'"
# A build takes 36 microseconds: more than its keys save of a broadcast join of all sales, less than a fifth of what
# they save of a shuffle, and less than they save if they skip three files of four.
LATENCY = 36e3
SOME_COST = OPTIONS.with_limits(costs=replace(NO_FIXED_COSTS, build_job=LATENCY, driver_build=LATENCY))


def codes(df, **more) -> set[ReasonCode]:
    return {each.code for each in explain(df, **more).reasons}


def test_unshuffled_unclustered_rows_get_no_build(pruned):
    df, result = pruned(BY_ITEM, SOME_COST)
    assert is_unchanged(df, result)
    assert ReasonCode.NOT_WORTH in codes(df, run_builds=False, options=SOME_COST)


def test_shuffled_rows_get_a_build(spark, pruned):
    with conf(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        df, result = pruned(BY_ITEM, SOME_COST)
    ((filter_,),) = [each.filters for each in explain(result).tables]
    assert ("item",) == filter_.columns
    assert {"sales": (FILES, FILES, FILES)} == files(result)
    assert ReasonCode.NOT_WORTH not in codes(result)
    assert not is_unchanged(df, result)


def test_small_side_that_cannot_be_broadcast_gets_a_build(spark, pruned):
    """A semi join broadcasts only its right side, which is large here."""
    sold = "SELECT 1 FROM {sales} s WHERE s.item = i.item AND amount >= day"
    query = f"SELECT * FROM {{items}} i WHERE name LIKE 'n1%' AND EXISTS ({sold})"
    with conf(spark, {"spark.sql.autoBroadcastJoinThreshold": "3000"}):
        _, result = pruned(query, SOME_COST)
    assert {"sales": (FILES, FILES, FILES)} == files(result)
    assert ReasonCode.NOT_WORTH not in codes(result)


def test_prunable_files_get_a_build(pruned):
    query = "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
    _, result = pruned(query, SOME_COST)
    assert {"sales": (2, 2, FILES)} == files(result)


# A wide table, of which the query reads two narrow columns, and keys of an aggregate that is not materialized.
WIDE = """
    SELECT {columns} FROM {wide} w JOIN (SELECT item, count(*) c FROM {sales} WHERE amount < 10 GROUP BY item) s
    ON w.item = s.item
"""


@pytest.fixture
def wide(spark, ways, star, tmp_path) -> str:
    columns = ["cast(id div 34 AS int) AS item", "id % 3 AS kind", *(f"uuid() AS long{at}" for at in range(5))]
    name = f"{star}wide"
    ways.stored(name, spark.range(0, 2000, 1, 2).selectExpr(*columns), str(tmp_path / name), star.rstrip("_"))
    return name


@pytest.mark.parametrize(("all_columns", "is_filtered"), [(False, False), (True, True)])
def test_bytes_that_are_saved_are_those_of_needed_columns(ways, star, wide, all_columns, is_filtered):
    columns = "w.*" if all_columns else "w.item, kind"
    query = WIDE.format(wide=wide, sales=f"{star}sales", columns=columns)
    options = replace(OPTIONS, broadcast_strategy="NONE")
    df, result = ways.agreed(query, options)
    assert ({wide: (1, 1, 2)} if is_filtered else {}) == files(result)
    assert is_filtered or ReasonCode.NOT_WORTH in codes(df, options=options)
