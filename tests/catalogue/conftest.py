"""Tables whose columns have the same names, and queries that run in three ways."""

from __future__ import annotations

import pytest

from pruning import PruningOptions
from tests.catalogue.facts import FILES, KEYS_PER_FILE, OPTIONS, fact_rows
from tests.three_ways import three_ways

DIMS = ("cast(id AS int) AS k", "id", "cast(id % 10 AS int) AS item", f"cast(id div {KEYS_PER_FILE} AS int) AS grp")


@pytest.fixture(scope="package")
def ways(spark):
    """Tables that Spark and DuckDB know by the same names, and a check that both and the pruned query agree."""
    with three_ways(spark) as found:
        yield found


@pytest.fixture(scope="package")
def stored(ways, tmp_path_factory):
    """A function that stores a DataFrame as a named table and returns its folder."""

    def store(name: str, df, format_: str = "delta", *partitions: str) -> str:
        folder = str(tmp_path_factory.mktemp("catalogue") / name)
        ways.stored(name, df, folder, format_, *partitions)
        return folder

    return store


@pytest.fixture(scope="package")
def tables(spark, stored, ways):
    """The tables `facts` (Delta) and `plain` (its copy in Parquet), clustered by `k`; the dimension `dims`; and
    `keys`.
    """
    facts = fact_rows(spark)
    stored("facts", facts)
    stored("plain", facts, "parquet")
    stored("dims", spark.range(0, FILES * KEYS_PER_FILE, 1, 1).selectExpr(*DIMS))
    keys = """
        SELECT * FROM VALUES ('one', 41, 41.0D), ('null', NULL, NULL), ('both', 41, 41.0D), ('both', NULL, NULL),
        ('zero', 0, 0.0D), ('minus', 0, -0.0D), ('nan', 7, double('NaN')), ('gone', 999, 999.0D) AS (kind, k, x)"""
    stored("keys", spark.sql(keys).coalesce(1), "parquet")
    return ways


@pytest.fixture
def agreed(tables):
    """The unpruned and the pruned DataFrame of a query, after both and DuckDB gave equal rows."""

    def run(query: str, options: PruningOptions = OPTIONS, *, duck: str | None = None, by_duck: bool = True):
        return tables.agreed(query, options, duck=duck, by_duck=by_duck)

    return run
