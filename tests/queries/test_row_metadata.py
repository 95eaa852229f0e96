"""Columns that tell of the file and the place of a row: the same for the rows that pruning leaves, by stock Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.functions import input_file_name

from pruning import explain, prune, report
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.in_session import kept
from tests.queries.star import BY_JOB, DAYS_PER_MONTH, OPTIONS, ROWS_PER_DAY, star_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

FILE = ("file_path", "file_name", "file_size", "file_block_start", "file_modification_time")
# Delta has a number of the row in its file where it needs one.
FIELDS = {
    "parquet": (*FILE, "row_index"),
    "delta": FILE,
    "delta with row ids": (*FILE, "row_index", "row_id", "row_commit_version"),
}
ROWS = DAYS_PER_MONTH * ROWS_PER_DAY


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory) -> Callable[[str], dict[str, str]]:
    """The paths of the star schema in a form of its tables, as SQL names them."""
    made = dict[str, dict[str, str]]()

    def of(form: str) -> dict[str, str]:
        if form not in made:
            folder, format_ = tmp_path_factory.mktemp(form.replace(" ", "_")), form.partition(" ")[0]
            for name, df in star_tables(spark).items():
                writer = df.write.format(format_)
                if form == "delta with row ids":
                    writer = writer.option("delta.enableRowTracking", "true")
                writer.save(str(folder / name))
            made[form] = {name: f"{format_}.`{folder / name}`" for name in star_tables(spark)}
        return made[form]

    return of


def agreed(df: DataFrame, result: DataFrame) -> Rows:
    rows = Rows(df.collect())
    assert rows == Rows(result.collect())
    return rows


@pytest.mark.parametrize("options", [OPTIONS, BY_JOB], ids=["driver", "job"])
@pytest.mark.parametrize("form", FIELDS)
def test_metadata_of_rows_is_that_of_stock(spark, tables, pruned_frame, form, options):
    asked = ", ".join(f"s._metadata.{each} AS {each}" for each in FIELDS[form])
    query = "SELECT s.*, {asked} FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
    df = spark.sql(query.format(asked=asked, **tables(form)))
    result = pruned_frame(df, options=options)
    rows = agreed(df, result)
    assert ROWS == len(rows)
    assert [("sales", 2)] == kept(report(result))


@pytest.mark.parametrize("form", FIELDS)
def test_name_of_the_input_file_is_that_of_stock(spark, tables, pruned_frame, form):
    """No scan below such a function is filtered."""
    query = """
        SELECT s.* FROM (SELECT *, input_file_name() AS file, input_file_block_start() AS at FROM {sales}) s
        JOIN {days} d ON s.day = d.day WHERE month = 2"""
    df = spark.sql(query.format(**tables(form)))
    result = pruned_frame(df, options=OPTIONS)
    assert ROWS == len(agreed(df, result))
    assert [] == kept(report(result))
    assert f"Project: {ReasonCode.NONDETERMINISTIC.value[:22]}" in str(explain(result))


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_name_of_the_input_file_above_a_pruned_join_is_not_refused(spark, tables, form):
    """Stock Spark refuses it, since it could name a file of either side; here the rows of one are in memory."""
    df = spark.sql("SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2".format(**tables(form)))
    with pytest.raises(AnalysisException, match="MULTI_SOURCES_UNSUPPORTED_FOR_EXPRESSION"):
        df.select(input_file_name())
    names = {name.rpartition("/")[2] for (name,) in prune(df, options=OPTIONS).select(input_file_name()).collect()}
    assert names == {name for (name,) in df.select("s._metadata.file_name").collect()}
