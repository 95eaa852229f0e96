"""Tables whose columns have the same names, and queries that are answered in three ways."""

from __future__ import annotations

import duckdb
import pytest

from pruning import PruningOptions, prune
from tests.catalogue.facts import FILES, KEYS_PER_FILE, OPTIONS, fact_rows

DIMS = ("cast(id AS int) AS k", "id", "cast(id % 10 AS int) AS item", f"cast(id div {KEYS_PER_FILE} AS int) AS grp")


@pytest.fixture(scope="package")
def stored(spark, tmp_path_factory):
    """Stores a DataFrame and registers it under a name for Spark and DuckDB; gives the folder."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("PRAGMA disable_optimizer")
        names = []

        def store(name: str, df, format_: str = "delta", *partitions: str) -> str:
            folder = str(tmp_path_factory.mktemp("catalogue") / name)
            df.write.format(format_).partitionBy(*partitions).save(folder)
            store.view(name, spark.read.format(format_).load(folder))
            return folder

        def view(name: str, df) -> None:
            df.createOrReplaceTempView(name)
            connection.register("arriving", df.toArrow())
            connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM arriving")
            connection.unregister("arriving")
            names.append(name)

        store.view, store.duck = view, connection
        yield store
        for name in names:
            spark.catalog.dropTempView(name)


@pytest.fixture(scope="package")
def tables(spark, stored):
    """`facts` of Delta and the same as `plain` of Parquet, clustered by `k`; the dimension `dims`; single `keys`."""
    facts = fact_rows(spark)
    stored("facts", facts)
    stored("plain", facts, "parquet")
    stored("dims", spark.range(0, FILES * KEYS_PER_FILE, 1, 1).selectExpr(*DIMS))
    keys = """
        SELECT * FROM VALUES ('one', 41, 41.0D), ('null', NULL, NULL), ('both', 41, 41.0D), ('both', NULL, NULL),
        ('zero', 0, 0.0D), ('minus', 0, -0.0D), ('nan', 7, double('NaN')), ('gone', 999, 999.0D) AS (kind, k, x)"""
    stored("keys", spark.sql(keys).coalesce(1), "parquet")
    return stored


@pytest.fixture
def agreed(spark, tables):
    """The query as it is and pruned, after both and DuckDB gave the same rows; of other words for DuckDB, if given."""

    def run(query: str, options: PruningOptions = OPTIONS, *, duck: str | None = None, by_duck: bool = True):
        df = spark.sql(query)
        result = prune(df, options=options)
        assert df.schema == result.schema
        rows = sorted(repr(tuple(row)) for row in df.collect())
        assert rows == sorted(repr(tuple(row)) for row in result.collect())
        if by_duck:
            found = tables.duck.execute(duck or query.replace("`", '"')).fetchall()
            assert rows == sorted(map(repr, found))
        return df, result

    return run


@pytest.fixture
def conf(spark):
    """Sets confs of the session for one test."""
    before: dict[str, str | None] = {}

    def put(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield put
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
