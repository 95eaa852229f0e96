"""A star schema of sales with two dimensions, queried in three ways."""

from __future__ import annotations

import pytest

from pruning import PruningOptions
from tests.queries.star import DAYS_PER_FILE, FILES, ITEMS, OPTIONS, ROWS_PER_DAY


@pytest.fixture(scope="module", params=["delta", "parquet"])
def star(spark, ways, request, tmp_path_factory) -> str:
    """The prefix of the views of a star schema: sales, clustered by day, with the dimensions `days` and `items`."""
    folder, format_ = tmp_path_factory.mktemp(request.param), request.param
    days = FILES * DAYS_PER_FILE
    sales = spark.range(0, days * ROWS_PER_DAY, 1, FILES).selectExpr(
        f"cast(id div {ROWS_PER_DAY} AS int) AS day", f"cast(id % {ITEMS} AS int) AS item", "id AS amount"
    )
    tables = {
        "sales": sales,
        "days": spark.range(0, days, 1, 1).selectExpr("cast(id AS int) AS day", "cast(id div 30 AS int) AS month"),
        "items": spark.range(0, ITEMS, 1, 1).selectExpr("cast(id AS int) AS item", "concat('n', id) AS name"),
    }
    for name, df in tables.items():
        ways.stored(f"{format_}_{name}", df, str(folder / name), format_)
    return f"{format_}_"


@pytest.fixture
def pruned(ways, star):
    """The unpruned and the pruned DataFrame of a query over the star, after all three ways gave equal rows."""

    def run(query: str, options: PruningOptions = OPTIONS):
        return ways.agreed(query.format(sales=f"{star}sales", days=f"{star}days", items=f"{star}items"), options)

    return run
