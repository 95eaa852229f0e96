"""Sales of days with two dimensions, answered in three ways."""

from __future__ import annotations

import pytest

from pruning import PruningOptions, prune
from tests.queries.star import DAYS_PER_FILE, FILES, ITEMS, OPTIONS, ROWS_PER_DAY


@pytest.fixture(scope="module", params=["delta", "parquet"])
def star(spark, duck_tables, request, tmp_path_factory) -> str:
    """Sales of days, clustered by day, with the dimensions `days` and `items`; the prefix of their views."""
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
        df.write.format(format_).save(str(folder / name))
        stored = spark.read.format(format_).load(str(folder / name))
        stored.createOrReplaceTempView(f"{format_}_{name}")
        duck_tables(f"{format_}_{name}", stored.toArrow())
    yield f"{format_}_"
    for name in tables:
        spark.catalog.dropTempView(f"{format_}_{name}")


@pytest.fixture(scope="module")
def duck_tables():
    """Registers a table by name; its `run` gives the rows of a query as DuckDB sees them."""
    import duckdb  # noqa: PLC0415

    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("PRAGMA disable_optimizer")

        def register(name, table) -> None:
            connection.register("arriving", table)
            connection.execute(f"CREATE TABLE {name} AS FROM arriving")
            connection.unregister("arriving")

        register.run = lambda query: connection.execute(query).fetchall()
        yield register


@pytest.fixture
def pruned(spark, star, duck_tables):
    """The pruned DataFrame of a query over the star, after all three ways of answering it agreed."""

    def run(query: str, options: PruningOptions = OPTIONS):
        text = query.format(sales=f"{star}sales", days=f"{star}days", items=f"{star}items")
        df = spark.sql(text)
        result = prune(df, options=options)
        assert df.schema == result.schema
        rows = sorted(map(tuple, df.collect()), key=repr)
        assert rows == sorted(map(tuple, result.collect()), key=repr)
        assert rows == sorted(duck_tables.run(text), key=repr)
        return df, result

    return run
