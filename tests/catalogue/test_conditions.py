"""Conditions beside a filter are unchanged, and a filter stays small for any number of keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning import explain
from tests.catalogue.facts import ALWAYS_BUILD, FILES, OPTIONS, fact_rows, files, refusal_codes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("tables")]

PLANNED = replace(OPTIONS, broadcast_strategy="NONE")
DIM = "(SELECT * FROM dims WHERE grp = 2)"
MANY = ", ".join(map(str, range(0, 160, 3)))


# Negations belong to the query: no filter of pruning is below a NOT, and each condition still holds.
@pytest.mark.parametrize(
    "condition",
    [
        # Failure catalogue 152.
        pytest.param("NOT (f.k = 41 AND f.id % 3 = f.item % 2)", id="not-and"),
        pytest.param("NOT (f.maybe > 65 OR f.item IN (3, 4) OR f.id % 7 = 1)", id="not-or"),
        # Failure catalogue 153.
        pytest.param(f"f.k NOT IN ({MANY})", id="not-in-many"),
        pytest.param(f"f.maybe NOT IN ({MANY}, NULL) OR f.item = 2", id="not-in-many-and-null"),
        # Failure catalogue 154.
        pytest.param("NOT (f.maybe IS NOT DISTINCT FROM 41)", id="not-null-safe"),
        pytest.param("f.maybe IS DISTINCT FROM d.k - 1", id="distinct-from-the-other-side"),
        # Failure catalogue 156.
        pytest.param("NOT (f.k BETWEEN 45 AND 50) AND f.k <> d.item + 40", id="not-between"),
        pytest.param("f.k NOT IN (SELECT k FROM dims WHERE item = 5)", id="not-in-a-subquery"),
        # Failure catalogue 159.
        pytest.param(
            "((f.maybe > 45 AND f.item > 2) OR (f.maybe < 43 AND (f.item < 9 OR f.id > 3))) IS NOT NULL",
            id="is-not-null",
        ),
    ],
)
def test_conditions_of_the_query_are_kept(agreed, condition):
    _, result = agreed(f"SELECT f.id, f.maybe FROM facts f JOIN {DIM} d ON f.k = d.k WHERE {condition}")
    assert {"facts": 1} == files(result)


# Failure catalogue 157, 158, 163: many keys become a few ranges, whatever their number.
def test_predicate_of_many_keys_stays_small(spark, agreed, stored):
    key = "CASE WHEN id < 10 THEN 40 + 2 * id WHEN id < 20 THEN 80 + 2 * id ELSE 1000 + 7 * id END"
    stored("scattered", spark.range(0, 1000, 1, 1).selectExpr(f"cast({key} AS int) AS k", "id AS n"))
    # The facts have fewer rows than the keys, so their keys would be those that pay.
    options = replace(ALWAYS_BUILD, broadcast_strategy="NONE").with_limits(max_in_list=100, max_ranges=8)
    _, result = agreed("SELECT f.id FROM facts f JOIN scattered s ON f.k = s.k WHERE s.n >= 0", options)
    plan = result._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count(" OR ") <= 3 * options.limits.max_ranges
    assert 2 == files(result)["facts"]


@pytest.fixture(scope="module")
def broad(spark, stored):
    """A table with ten thousand keys in each file."""
    stored("broad", spark.range(0, 80_000, 1, FILES).selectExpr("cast(id AS int) AS k", "id"))


# Failure catalogue 157, 158: as many ranges and keys as the options allow.
@pytest.mark.full
@pytest.mark.parametrize(
    ("key", "keys", "test", "kept"),
    [
        # Five keys of every twenty, in the first quarter of the table.
        pytest.param("20 * (id div 5) + id % 5", 5000, "ranges", 2, id="a-thousand-ranges"),
        pytest.param("7 * id", 10_000, "IN list", 7, id="ten-thousand-keys"),
        pytest.param("CASE WHEN id = 0 THEN 69999 ELSE 7 * id END", 10_001, "bitmap", 8, id="one-key-more"),
    ],
)
@pytest.mark.usefixtures("broad")
def test_largest_predicates(spark, agreed, stored, key, keys, test, kept):
    stored("sparse", spark.range(0, keys, 1, 1).selectExpr(f"cast({key} AS int) AS k", "id AS n"))
    # No limit on the size of the generated code.
    limits = PLANNED.limits.without("max_ranges", "max_in_list", "method_bytes")
    options = replace(PLANNED, limits=limits)
    _, result = agreed("SELECT count(*), sum(b.id) FROM broad b JOIN sparse s ON b.k = s.k WHERE s.n >= 0", options)
    assert {"broad": kept} == files(result)
    ((filter_,),) = (each.filters for each in explain(result).tables)
    assert test == filter_.row_test


# Failure catalogue 161: a query with an empty side ends without waiting.
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_empty_side_of_a_join(agreed, conf, stored, spark, adaptive):
    conf("spark.sql.adaptive.enabled", adaptive)
    stored("nothing", spark.table("dims").where("false"))
    _, result = agreed("SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE d.grp = 77")
    assert {"facts": 0} == files(result)
    _, result = agreed("SELECT f.id FROM facts f JOIN nothing d ON f.k = d.k WHERE d.grp = 2")
    assert {"facts": 0} == files(result)
    agreed(f"SELECT f.id FROM nothing f JOIN {DIM} d ON f.k = d.k")
    agreed("SELECT count(*), sum(f.id) FROM facts f WHERE f.k > (SELECT max(k) FROM nothing)")


# Failure catalogue 160: with and without dynamic partition pruning, for each kind of join.
@pytest.mark.parametrize("threshold", ["10485760", "-1"])
@pytest.mark.parametrize("dynamic", ["true", "false"])
def test_pruning_beside_dynamic_partition_pruning(spark, agreed, conf, stored, threshold, dynamic):
    conf("spark.sql.autoBroadcastJoinThreshold", threshold)
    conf("spark.sql.optimizer.dynamicPartitionPruning.enabled", dynamic)
    conf("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    stored("sliced", fact_rows(spark).selectExpr("k div 20 AS part", "k", "id"), "parquet", "part")
    query = "SELECT s.id FROM sliced s JOIN dims d ON s.part = d.grp WHERE d.k BETWEEN 41 AND 43 AND d.item < 9"
    for options in (OPTIONS, PLANNED):
        assert {"sliced": 1} == files(agreed(query, options)[1])


# Failure catalogue 164: several filters on one column.
def test_several_builds_filter_one_column(agreed):
    _, result = agreed(
        f"""SELECT f.id FROM facts f JOIN {DIM} d ON f.k = d.k JOIN (SELECT k FROM dims WHERE item = 3) e ON f.k = e.k
            JOIN (SELECT k FROM dims WHERE item IN (3, 4)) g ON f.k = g.k
            WHERE f.k IN (SELECT k FROM dims WHERE grp < 4) AND f.k >= (SELECT min(k) FROM keys WHERE kind = 'one')"""
    )
    assert {"facts": 1} == files(result)


# Failure catalogue 165: unsupported types.
@pytest.mark.parametrize(
    "key", ["array(k)", "map_values(map(k, k))", "named_struct('a', k)", "CAST(k AS INTERVAL DAY)"]
)
def test_keys_of_unsupported_types_give_no_filter(spark, agreed, tmp_path, key):
    fact_rows(spark).selectExpr(f"{key} AS k", "id").write.parquet(f"{tmp_path}/odd")
    spark.table("dims").selectExpr(f"{key} AS k", "grp").write.parquet(f"{tmp_path}/odd_dims")
    query = (
        f"SELECT f.id FROM parquet.`{tmp_path}/odd` f JOIN parquet.`{tmp_path}/odd_dims` d ON f.k = d.k WHERE d.grp = 2"
    )
    every = replace(PLANNED, always=True)
    df, result = agreed(query, every, duck=f"SELECT f.id FROM facts f JOIN {DIM} d ON f.k = d.k")
    assert {} == files(result)
    assert {"UNSUPPORTED_TYPE", "COMPUTED", "UNREPEATABLE_KEYS", "BUILD_FAILED"} & refusal_codes(df, result)
