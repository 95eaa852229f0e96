"""The facts of the catalogue's tests, and helpers that read the files and reasons of a pruned query."""

from __future__ import annotations

from pruning import explain, report
from pruning.reasons import ReasonCode
from tests.costs import ALWAYS, FREE_BUILDS

FILES, KEYS_PER_FILE = 8, 20
OPTIONS = FREE_BUILDS
# Options with which builds run whatever their keys save.
ALWAYS_BUILD = ALWAYS
# No `id` is in both tables: a filter on the column of the same name on the other side would leave no row.
FACTS = (
    "cast(id div 2 AS int) AS k",
    "id + 10000 AS id",
    "cast(id % 10 AS int) AS item",
    "CASE WHEN id % 4 > 0 THEN cast(id div 2 AS int) END AS maybe",
    "CASE WHEN id < 2 THEN -0.0D WHEN id >= 280 AND id % 10 = 9 THEN double('NaN') ELSE double(id div 2) END AS weight",
)


def fact_rows(spark):
    """Two rows for each key, clustered by key, one partition per file."""
    return spark.range(0, FILES * KEYS_PER_FILE * 2, 1, FILES).selectExpr(*FACTS)


def files(df) -> dict[str, int]:
    """The files that each pruned scan read, after a check that they are the planned ones."""
    tables = report(df).tables
    for each in tables:
        # While a plan runs, Spark may remove a scan without rows if the join does not need it.
        assert each.measured is None or each.measured.files_read == each.planned.files_kept, each
    return {each.planned.table: each.planned.files_kept for each in tables}


def refusal_codes(df, result) -> set[str]:
    """The reason codes against further filters: before builds, in walks to scans, and after builds.

    A session that has pruned the result tells of it alone.
    """
    explained = [explain(result)]
    if result.sparkSession is df.sparkSession:
        explained.append(explain(df.where("true"), options=OPTIONS))
    stops = " ".join(stop for each in explained for edge in each.edges for stop in edge.stops)
    codes = {reason.code.name for each in explained for reason in each.reasons}
    return codes | {code.name for code in ReasonCode if code.value in stops}
