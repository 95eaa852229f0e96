"""Plan fingerprints: builds have the same key only if they give the same rows; unsupported plans have no key."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.builds.cached_builds import BuildFingerprint, BuildFingerprints
from connectors.registry import optimized
from sample_data.confs import same_session

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    """A folder with two Delta tables of the same rows, and a view over each. Queries use both, since Delta
    lists a single table itself.
    """
    folder = tmp_path_factory.mktemp("keys")
    df = spark.range(0, 4, 1, 1).selectExpr("cast(id AS int) AS n", "id", "cast(id AS double) AS x", "'t' AS t")
    for name in ("one", "other"):
        df.write.format("delta").save(str(folder / name))
        spark.read.format("delta").load(str(folder / name)).createOrReplaceTempView(f"rows_{name}")
    yield folder
    for name in ("one", "other"):
        spark.catalog.dropTempView(f"rows_{name}")


def build_key(spark, plan, key) -> BuildFingerprint | str:
    (found,) = BuildFingerprints(spark, [(plan, key)]).now()
    return found


def session_key(spark) -> str:
    plan = spark.range(1).where("false")._jdf.queryExecution().optimizedPlan()
    found = build_key(spark, plan, plan.output().apply(0))
    assert isinstance(found, BuildFingerprint), found
    return found.session


def key_of(spark, query: str) -> BuildFingerprint | str:
    """The key of the left side of a join with the other table, by its first column."""
    df = spark.sql(f"SELECT * FROM ({query}) q JOIN rows_other o ON q.k = o.n")
    plan = optimized(df).children().head()
    return build_key(spark, plan, plan.output().apply(0))


def named(spark, query: str) -> BuildFingerprint:
    found = key_of(spark, query)
    assert isinstance(found, BuildFingerprint), found
    return found


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT n AS k FROM rows_one WHERE t = 'a'", "SELECT r.n AS k FROM rows_one r WHERE r.t = 'a'"),
        (
            "SELECT k FROM (SELECT n AS k, max(x) AS m FROM rows_one GROUP BY n) WHERE m > 1",
            "SELECT k FROM (SELECT n AS k, max(x) AS b FROM rows_one GROUP BY n) WHERE b > 1",
        ),
    ],
    ids=["names", "aggregate"],
)
def test_names_and_ids_of_columns_do_not_change_the_key(spark, one, other):
    assert named(spark, one) == named(spark, one)
    assert named(spark, one) == named(spark, other)


# Failure catalogue 52: scans with different filters must be distinguished. 53: scans of a copy of a table, too.
@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT n AS k FROM rows_one", "SELECT n AS k FROM rows_other"),
        ("SELECT n AS k FROM rows_one WHERE n > 1", "SELECT n AS k FROM rows_one WHERE n > 2"),
        ("SELECT n AS k FROM rows_one WHERE n > 1", "SELECT n AS k FROM rows_one WHERE n >= 1"),
        ("SELECT n AS k FROM rows_one WHERE n > 1", "SELECT n AS k FROM rows_one WHERE id > 1"),
        ("SELECT n AS k, id FROM rows_one WHERE n > 1", "SELECT n AS k, x FROM rows_one WHERE n > 1"),
        ("SELECT n AS k, id, n AS m FROM rows_one", "SELECT n AS k, id, id AS m FROM rows_one"),
        ("SELECT n AS k, 0.0D / x AS y FROM rows_one", "SELECT n AS k, -0.0D / x AS y FROM rows_one"),
        ("SELECT n AS k, x + (x + 0.1D) AS y FROM rows_one", "SELECT n AS k, (x + x) + 0.1D AS y FROM rows_one"),
        ("SELECT n AS k, 1 AS y FROM rows_one", "SELECT n AS k, 1L AS y FROM rows_one"),
        ("SELECT n AS k, '12' AS y FROM rows_one", "SELECT n AS k, x'3132' AS y FROM rows_one"),
        ("SELECT n AS k, struct(n AS a) AS y FROM rows_one", "SELECT n AS k, struct(n AS b) AS y FROM rows_one"),
        (
            "SELECT n AS k FROM rows_one WHERE t IN ('a', 'bc')",
            "SELECT n AS k FROM rows_one WHERE t IN ('ab', 'c')",
        ),
        (
            "SELECT n AS k, CASE WHEN n = 1 THEN 'a' ELSE 'b' END AS y FROM rows_one",
            "SELECT n AS k, CASE WHEN n = 1 THEN 'a' WHEN n = 2 THEN 'b' END AS y FROM rows_one",
        ),
        ("SELECT n AS k FROM rows_one WHERE t = 'é'", "SELECT n AS k FROM rows_one WHERE t = 'è'"),
        ("SELECT n AS k, x AS y FROM rows_one WHERE x > 0.0D", "SELECT n AS k, x AS y FROM rows_one WHERE x > -1.0D"),
        (
            "SELECT n AS k FROM rows_one WHERE n IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
            "SELECT n AS k FROM rows_one WHERE n IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13)",
        ),
        (
            "SELECT max(n) AS k FROM rows_one GROUP BY id",
            "SELECT min(n) AS k FROM rows_one GROUP BY id",
        ),
        (
            "SELECT n AS k FROM rows_one WHERE n > (SELECT max(n) - 2 FROM rows_one)",
            "SELECT n AS k FROM rows_one WHERE n > (SELECT max(n) - 2 FROM rows_other)",
        ),
    ],
    ids=str,
)
def test_plans_with_other_rows_have_another_key(spark, one, other):
    assert named(spark, one) != named(spark, other)


@pytest.mark.usefixtures("rows")
def test_key_column_is_part_of_the_key(spark):
    plan = optimized(spark.sql("SELECT q.* FROM rows_one q JOIN rows_other o ON q.n = o.n")).children().head()
    found = [build_key(spark, plan, plan.output().apply(at)) for at in (0, 1)]
    assert (True, True) == (found[0].leaves == found[1].leaves, found[0].operators != found[1].operators)


def test_unsupported_plans_have_no_key(spark, rows):
    cached = spark.table("rows_one").where("n = 1").cache()
    try:
        cached.createOrReplaceTempView("rows_cached")
        assert "it has a InMemoryRelation" == key_of(spark, "SELECT n AS k FROM rows_cached")
    finally:
        cached.unpersist(blocking=True)
        spark.catalog.dropTempView("rows_cached")
    assert "it has a Rand" == key_of(spark, "SELECT n AS k, rand() AS r FROM rows_one")
    for query, kind in {
        "SELECT n AS k FROM rows_one LIMIT 2": "has a GlobalLimit",
        "SELECT n AS k, row_number() OVER (ORDER BY id) AS r FROM rows_one": "has a Window",
        "SELECT explode(array(n, 1)) AS k FROM rows_one": "has a Generate",
        "SELECT n AS k FROM rows_one UNION ALL SELECT n FROM rows_other": "has a Union",
        "SELECT n AS k, array(-0.0D) AS y FROM rows_one": "holds a GenericArrayData",
        "SELECT n AS k FROM rows_one WHERE exists(sequence(0, n), a -> a = 2)": "holds a AtomicReference",
    }.items():
        assert f"it {kind}" == key_of(spark, query), query
    listed = spark.read.format("delta").load(str(rows / "one"))
    analyzed = listed._jdf.queryExecution().analyzed()
    assert "the files of a TahoeLogFileIndex are not pinned" == build_key(spark, analyzed, analyzed.output().apply(0))
    mine = listed.select(F.udf(lambda n: n + 1, "int")("n"))._jdf.queryExecution().analyzed()
    assert "it has a PythonUDF" == build_key(spark, mine, mine.output().apply(0))
    given = spark.createDataFrame(spark.sparkContext.parallelize([(1,)]), "k int")._jdf.queryExecution().analyzed()
    assert "it has a LogicalRDD" == build_key(spark, given, given.output().apply(0))
    long = "SELECT n AS k FROM rows_one WHERE t != '{}' AND t != 'x'"
    assert isinstance(key_of(spark, long.format("y" * (1 << 19))), BuildFingerprint)
    assert "its plan takes more than 1048576 characters" == key_of(spark, long.format("y" * (1 << 20)))


def test_session_key_depends_on_confs(spark, conf):
    other = same_session(spark)
    assert session_key(spark) == session_key(other)
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert session_key(spark) != session_key(other)
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    assert session_key(spark) == session_key(other)
    other.conf.set("spark.sql.ansi.enabled", "false")
    assert session_key(spark) != session_key(other)
