"""Tables whose columns have the same names, and queries that are answered in three ways."""

from __future__ import annotations

import pytest

from pruning import PruningOptions
from tests.catalogue.facts import FILES, KEYS_PER_FILE, OPTIONS, fact_rows
from tests.three_ways import three_ways

DIMS = ("cast(id AS int) AS k", "id", "cast(id % 10 AS int) AS item", f"cast(id div {KEYS_PER_FILE} AS int) AS grp")


@pytest.fixture(scope="package")
def ways(spark):
    """Knows tables by name, and answers queries over them in three ways."""
    with three_ways(spark) as found:
        yield found


@pytest.fixture(scope="package")
def stored(ways, tmp_path_factory):
    """Stores a DataFrame, names it, and gives the folder."""

    def store(name: str, df, format_: str = "delta", *partitions: str) -> str:
        folder = str(tmp_path_factory.mktemp("catalogue") / name)
        ways.stored(name, df, folder, format_, *partitions)
        return folder

    return store


@pytest.fixture(scope="package")
def tables(spark, stored, ways):
    """`facts` of Delta and the same as `plain` of Parquet, clustered by `k`; the dimension `dims`; single `keys`."""
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
    """The query as it is and pruned, after both and DuckDB gave the same rows; of other words for DuckDB, if given."""

    def run(query: str, options: PruningOptions = OPTIONS, *, duck: str | None = None, by_duck: bool = True):
        return tables.agreed(query, options, duck=duck, by_duck=by_duck)

    return run
