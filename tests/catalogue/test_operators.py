"""Operators between a join and its scans: those that pass keys, and those that stop them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning import prune
from tests.catalogue.facts import ALWAYS_BUILD, KEYS_PER_FILE, OPTIONS, fact_rows, files, refusal_codes

KEYS_ONLY = replace(OPTIONS, top_k=False)
# Rows of builds are not joined, so those that another run may not give again yield no keys.
RUN_AGAIN = replace(OPTIONS, broadcast_strategy="NONE")

pytestmark = pytest.mark.spark

DIM = "(SELECT * FROM dims WHERE grp = 2)"


def case(name: str, query: str, *expected):
    return pytest.param(query.replace("{dim}", DIM), *expected, id=name)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        case(
            "order-and-limit-above",
            "SELECT f.id, d.item FROM facts f JOIN {dim} d ON f.k = d.k ORDER BY f.id DESC LIMIT 7 OFFSET 2",
            {"facts": 1},
        ),
        # Failure catalogue 7: the greatest value of one column is no key of another one.
        case(
            "aggregates-above",
            """SELECT d.item, max(f.id), min(f.maybe), count(DISTINCT f.item) FROM facts f JOIN {dim} d ON f.k = d.k
               WHERE f.item = (SELECT max(item) FROM dims WHERE k < 44) GROUP BY d.item""",
            {"facts": 1},
        ),
        case(
            "grouping-sets-above",
            """SELECT f.k, f.item, grouping(f.k), count(*) FROM facts f JOIN {dim} d ON f.k = d.k
               GROUP BY CUBE (f.k, f.item)""",
            {"facts": 1},
        ),
        # Failure catalogue 2.
        case(
            "distinct-of-a-cte-that-is-read-twice",
            """WITH c AS (SELECT DISTINCT k, maybe FROM facts)
               SELECT a.k, b.maybe FROM c a JOIN {dim} d ON a.k = d.k LEFT JOIN c b ON b.k = a.k + 20""",
            # The first pruned scan was the build of the second, and is joined as materialized rows.
            {"facts#2": 1},
        ),
        case(
            "distinct-beside-an-empty-table",
            """WITH c AS (SELECT DISTINCT k FROM facts)
               SELECT c.k, e.item FROM c LEFT JOIN (SELECT * FROM dims WHERE grp = 77) e ON e.k = c.k
               JOIN {dim} d ON d.k = c.k""",
            {"facts": 1},
        ),
        case(
            "groups-by-the-key",
            "SELECT f.k, n FROM (SELECT k, count(*) AS n FROM facts GROUP BY k) f JOIN {dim} d ON f.k = d.k",
            {"facts": 1},
        ),
        case(
            "windows-over-the-key",
            """SELECT f.k, f.id, n FROM (
                SELECT k, id, row_number() OVER (PARTITION BY k, item ORDER BY id) AS n FROM plain
               ) f JOIN {dim} d ON f.k = d.k""",
            {"plain": 1},
        ),
        # Failure catalogue 9: one of two keys is a constant in its branch.
        case(
            "a-union-with-constants",
            """SELECT u.label, u.id FROM (
                SELECT 1 AS label, k, id FROM facts UNION ALL SELECT 2, k, id FROM plain UNION ALL SELECT 3, 41, 5
               ) u JOIN {dim} d ON u.k = d.k AND u.label = d.item""",
            {"facts": 1, "plain": 1},
        ),
        case(
            "a-union-of-types",
            """SELECT u.k, u.id FROM (
                SELECT k, id FROM facts UNION ALL SELECT CAST(k AS bigint), id FROM plain UNION ALL SELECT 41, 5
               ) u JOIN {dim} d ON u.k = d.k""",
            {"facts": 1, "plain": 1},
        ),
        # Failure catalogue 27: partitions on a side of an outer join.
        case(
            "repartitioned",
            """SELECT d.k, f.id FROM {dim} d LEFT JOIN (SELECT /*+ REPARTITION(3, k) */ * FROM facts) f ON f.k = d.k
               RIGHT JOIN (SELECT * FROM dims WHERE grp IN (1, 2)) e ON e.k = d.k""",
            {"facts": 1},
        ),
    ],
)
def test_operators_that_pass_keys(agreed, query, kept):
    _, result = agreed(query)
    assert kept == files(result)


def test_union_of_swapped_columns_passes_keys_by_position(agreed):
    query = f"""SELECT u.a, u.b FROM (
        SELECT k AS a, item AS b FROM facts UNION ALL SELECT item AS b, k AS a FROM plain
        ) u JOIN {DIM} d ON u.a = d.k"""
    _, result = agreed(query, ALWAYS_BUILD)
    # No file has such an item.
    assert {"facts": 1, "plain": 0} == files(result)


# Sides without a condition that filter the dimension, and the files of it that are read.
FILTERED = {"limit-within-a-branch-of-a-union": {"keys": 1}, "an-aggregate-of-the-key": {"dims": 1}}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        # Failure catalogue 1.
        case(
            "limit-below",
            "SELECT f.id FROM (SELECT * FROM facts ORDER BY id LIMIT 50) f JOIN {dim} d ON f.k = d.k",
            "LIMITED",
        ),
        case(
            "offset-below",
            "SELECT f.id FROM (SELECT * FROM plain ORDER BY id LIMIT 60 OFFSET 50) f JOIN {dim} d ON f.k = d.k",
            "LIMITED",
        ),
        case(
            "limit-within-a-branch-of-a-union",
            """SELECT u.id FROM (
                SELECT k, 1 AS id FROM keys UNION ALL (SELECT k, id FROM facts ORDER BY id LIMIT 90)
               ) u JOIN {dim} d ON u.k = d.k""",
            "LIMITED",
        ),
        case(
            "rank-among-all",
            """SELECT f.id FROM (SELECT *, rank() OVER (ORDER BY id) AS r FROM facts) f
               JOIN {dim} d ON f.k = d.k WHERE r < 99""",
            "NOT_GROUPED",
        ),
        case(
            "windows-over-another-column",
            """SELECT f.id, n FROM (SELECT *, count(*) OVER (PARTITION BY item) AS n FROM facts) f
               JOIN {dim} d ON f.k = d.k""",
            "NOT_GROUPED",
        ),
        case(
            "rollup-below",
            """SELECT f.k, n FROM (SELECT k, item, count(*) AS n FROM facts GROUP BY ROLLUP (k, item)) f
               JOIN {dim} d ON f.k = d.k""",
            "GROUPING_SETS",
        ),
        case(
            "an-aggregate-of-the-key",
            "SELECT f.k, f.item FROM (SELECT item, max(k) AS k FROM facts GROUP BY item) f JOIN dims d ON f.k = d.k",
            "NOT_GROUPED",
        ),
        # Failure catalogue 20: a constant comes from no table.
        case(
            "constants-of-a-union",
            """SELECT u.id FROM (SELECT 41 AS key, id FROM facts WHERE item = 3 UNION ALL SELECT 7, id FROM plain) u
               JOIN {dim} d ON u.key = d.k""",
            "COMPUTED",
        ),
    ],
)
def test_operators_that_stop_keys(request, agreed, query, code):
    # Without top-k filters, which would skip files that keys cannot.
    df, result = agreed(query, KEYS_ONLY)
    assert FILTERED.get(request.node.callspec.id, {}) == files(result)
    assert code in refusal_codes(df, result)


@pytest.fixture(scope="module")
def sliced(spark, stored):
    """The facts partitioned by the `grp` of their keys: `sliced` in Delta, `sliced_plain` in Parquet."""
    rows = fact_rows(spark).selectExpr(f"cast(k div {KEYS_PER_FILE} AS int) AS part", "*")
    for name, format_ in (("sliced", "delta"), ("sliced_plain", "parquet")):
        stored(name, rows, format_, "part")


# Tables with partitions, because an optimizer could mistake the conditions below for partition filters.
PROBES = pytest.mark.parametrize(
    ("table", "key", "of"), [("facts", "k", "k"), ("sliced", "part", "grp"), ("sliced_plain", "part", "grp")]
)


# Failure catalogue 20: the branch with a constant has no partition column, and the other branch is filtered by it.
# Spark does not know the key before the build.
@pytest.mark.parametrize("table", ["sliced", "sliced_plain"])
@pytest.mark.usefixtures("sliced")
def test_union_of_a_constant_and_a_partition_column(agreed, table):
    # Twenty rows could have all eight groups.
    df, result = agreed(
        f"""
        SELECT u.part, u.id, d.item FROM (
            SELECT 2 AS part, id FROM facts UNION ALL SELECT part, id FROM {table}
        ) u JOIN (SELECT * FROM dims WHERE id BETWEEN 40 AND 59) d ON u.part = d.grp""",
        ALWAYS_BUILD,
    )
    assert {table: 1} == files(result)
    assert "COMPUTED" in refusal_codes(df, result)


# Failure catalogue 21: keys of more than one value.
@PROBES
@pytest.mark.usefixtures("sliced")
def test_struct_keys_stop(agreed, table, key, of):
    query = f"SELECT f.id FROM {table} f JOIN {DIM} d ON "
    df, result = agreed(
        f"{query} named_struct('key', f.{key}) = named_struct('key', d.{of})", duck=f"{query} f.{key} = d.{of}"
    )
    assert {} == files(result)
    assert "COMPUTED" in refusal_codes(df, result)


# Failure catalogue 21: several keys in one row.
def test_exploded_keys_stop(agreed):
    exploded = "SELECT f.id, e FROM facts f LATERAL VIEW explode(array(f.k, f.item)) AS e"
    df, result = agreed(
        f"SELECT f.id, f.e FROM ({exploded}) f JOIN {DIM} d ON f.e = d.k",
        duck="""SELECT f.id, d.k FROM (SELECT id, k AS e FROM facts UNION ALL SELECT id, item FROM facts) f
                JOIN dims d ON f.e = d.k WHERE d.grp = 2""",
    )
    assert {} == files(result)
    assert "COMPUTED" in refusal_codes(df, result)


def test_generator_passes_keys_of_other_columns(agreed):
    _, result = agreed(
        f"""SELECT f.id, f.e FROM (SELECT k, id, e FROM facts LATERAL VIEW OUTER explode(array(item, id)) AS e) f
            JOIN {DIM} d ON f.k = d.k""",
        duck="""SELECT f.id, f.e FROM (
                    SELECT id, k, item AS e FROM facts UNION ALL SELECT id, k, id FROM facts
                ) f JOIN dims d ON f.k = d.k WHERE d.grp = 2""",
    )
    assert {"facts": 1} == files(result)


# Failure catalogue 19: a sample of fewer rows is another sample.
def test_sample_stops_keys(agreed):
    df, result = agreed(
        f"""SELECT f.id FROM (SELECT * FROM facts TABLESAMPLE (40 PERCENT) REPEATABLE (5)) f
            JOIN {DIM} d ON f.k = d.k""",
        by_duck=False,
    )
    assert {} == files(result)
    assert "SAMPLED" in refusal_codes(df, result)


# Failure catalogue 22, 43: a Python predicate without a column, which an optimizer may take for a partition filter, and
# an opaque one.
@PROBES
@pytest.mark.usefixtures("sliced")
def test_python_functions_stop_keys(spark, agreed, conf, table, key, of):
    # Dynamic partition pruning would wait forever where a Python function is above the scan.
    conf("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false")
    spark.udf.register("is_one", lambda value: value == 1, "boolean")
    spark.udf.register("is_two", lambda value: value in {2, 41}, "boolean")
    spark.udf.register("same", lambda value: value, "int")
    query = f"SELECT f.id FROM (SELECT * FROM {table} WHERE %s) f JOIN {DIM} d ON f.{key} = d.{of}"
    try:
        for condition, plain in (
            ("is_one(2)", "1 = 2"),
            ("is_one(1)", "true"),
            (f"is_two({key})", f"{key} IN (2, 41)"),
        ):
            df, result = agreed(query % condition, RUN_AGAIN, duck=query % plain)
            assert {} == files(result)
            assert "OPAQUE" in refusal_codes(df, result)
        same = (query % "true").replace(f"f.{key} =", f"same(f.{key}) =")
        df, result = agreed(same, RUN_AGAIN, duck=query % "true")
        assert {} == files(result)
        assert "OPAQUE" in refusal_codes(df, result)
    finally:
        for name in ("is_one", "is_two", "same"):
            spark.sql(f"DROP TEMPORARY FUNCTION {name}")


# Failure catalogue 27: buckets are still read as buckets.
def test_bucketed_tables(spark, agreed, ways):
    rows = spark.table("facts").repartition(4, "k")
    rows.write.bucketBy(4, "k").sortBy("k").format("parquet").saveAsTable("bucketed")
    try:
        ways.view("bucketed_rows", spark.table("bucketed"))
        for join in ("RIGHT JOIN", "JOIN"):
            query = f"SELECT d.k, f.id FROM bucketed f {join} {DIM} d ON f.k = d.k"
            _, result = agreed(query, ALWAYS_BUILD, duck=query.replace("bucketed f", "bucketed_rows f"))
            assert {"bucketed": 4} == files(result)
        assert prune(spark.table("bucketed"), options=OPTIONS).schema == spark.table("bucketed").schema
    finally:
        spark.sql("DROP TABLE bucketed")
