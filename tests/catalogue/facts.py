"""What the catalogue's tests ask of a pruned query."""

from __future__ import annotations

from dataclasses import replace

from pruning import PruningOptions, explain, report
from pruning.reasons import ReasonCode

FILES, KEYS_PER_FILE = 8, 20
# The facts are over this, the dimensions under it.
OPTIONS = PruningOptions(min_probe_bytes=6000)
# With these builds are run however little their keys may spare a scan.
WHATEVER = replace(OPTIONS, min_probe_bytes=0)
# A filter that went to a column of the same name on the other side would leave no row: no `id` is in both tables.
FACTS = (
    "cast(id div 2 AS int) AS k",
    "id + 10000 AS id",
    "cast(id % 10 AS int) AS item",
    "CASE WHEN id % 4 > 0 THEN cast(id div 2 AS int) END AS maybe",
    "CASE WHEN id < 2 THEN -0.0D WHEN id >= 280 AND id % 10 = 9 THEN double('NaN') ELSE double(id div 2) END AS weight",
)


def fact_rows(spark):
    """Two rows for each key, clustered by key in partitions of the size of a file."""
    return spark.range(0, FILES * KEYS_PER_FILE * 2, 1, FILES).selectExpr(*FACTS)


def files(df) -> dict[str, int]:
    """For each pruned scan the files that it read, which are those it was planned to read."""
    tables = report(df).tables
    for each in tables:
        # A scan that gave no row is taken out of the plan while it runs, where the join needs nothing of it.
        assert each.measured is None or each.measured.files_read == each.planned.files_kept, each
    return {each.planned.table: each.planned.files_kept for each in tables}


def why_not(df, result) -> set[str]:
    """The codes of everything that keeps a query from more filters: before builds, in walks to scans, after builds."""
    explained = [explain(result), explain(df.where("true"), options=OPTIONS)]
    stops = " ".join(stop for each in explained for edge in each.edges for stop in edge.stops)
    codes = {reason.code.name for each in explained for reason in each.reasons}
    return codes | {code.name for code in ReasonCode if code.value in stops}
