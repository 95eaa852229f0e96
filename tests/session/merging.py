"""Commands of Delta that run without pruning and with it, and what a session has recorded of their target."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from connectors.session import session_pruning
from pruning import PruningOptions
from pruning.results.prune_report import PruneReport, TableReport
from sample_data.rows import Rows
from tests.queries.star import DAYS_PER_FILE, FILES, ITEMS, OPTIONS, ROWS_PER_DAY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Sales of the days 60 to 89, which lie in two of the eight files of a target. Of the target's rows a third is missing.
ARRIVED = "SELECT day, item, amount FROM {sales} WHERE day BETWEEN 60 AND 89"
BY_AMOUNT = "MERGE INTO delta.`{target}` t USING ({source}) s ON t.amount = s.amount"
UPSERT = BY_AMOUNT + " WHEN MATCHED THEN UPDATE SET item = -s.item WHEN NOT MATCHED THEN INSERT *"
INSERT = BY_AMOUNT + " WHEN NOT MATCHED THEN INSERT *"
_TIMES = ("Ms", "Bytes")


def latest_commit(spark: SparkSession, target: str) -> tuple[int, dict[str, str]]:
    """The version of the latest commit, and those of its metrics that do not depend on time or on sizes of files."""
    version, metrics = (
        spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").select("version", "operationMetrics").first()
    )
    return version, {name: value for name, value in metrics.items() if not any(each in name for each in _TIMES)}


class Targets:
    """The reports of the target, of each plan that the session has recorded since now."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.before = spark, [*session_pruning.records(spark)]

    def reports(self) -> list[PruneReport]:
        """Those of all plans, newest first."""
        found = session_pruning.records(self.spark)
        return [each.report() for each in found if not any(each is known for known in self.before)]

    def verdicts(self) -> list[str]:
        """Those of all plans, newest first."""
        return [each.verdict for each in self.reports()]

    def found(self, *, is_pruned: bool) -> list[TableReport]:
        """Those that tell of files left out, or those of plans that need all files that the command chose."""
        reports = [each for each in self.reports() if bool(each.nothing) is not is_pruned]
        # A number follows the name of a table that is read twice.
        return [table for each in reports for table in each.tables if table.planned.table.split("#")[0] == "target"]

    def kept(self) -> list[int]:
        """The files of the target that were kept by each plan that left out some."""
        return [each.planned.files_kept for each in self.found(is_pruned=True)]


class Both:
    """Commands that run without pruning and then with it, each time on a table of its own."""

    def __init__(self, spark: SparkSession, star: str, enabled: Callable[..., object], folder: Any) -> None:
        self.spark, self.star, self.enabled, self.folder = spark, star, enabled, folder
        self.made: Callable[[str], None] = self.plain

    @property
    def stored(self) -> Any:
        """Two thirds of the sales, in as many files with as many days each."""
        rows = self.spark.range(0, FILES * DAYS_PER_FILE * ROWS_PER_DAY, 1, FILES).where("id % 3 > 0")
        day = f"cast(id div {ROWS_PER_DAY} AS int) AS day"
        return rows.selectExpr(day, f"cast(id % {ITEMS} AS int) AS item", "id AS amount")

    def plain(self, target: str) -> None:
        """A table without properties."""
        self.stored.write.format("delta").save(target)

    def declared(self, columns: str, properties: str) -> None:
        """A table with other columns and properties is made with these rows."""

        def made(target: str) -> None:
            self.spark.sql(f"CREATE TABLE delta.`{target}` ({columns}) USING delta {properties}")
            self.stored.write.format("delta").mode("append").save(target)

        self.made = made

    def copy(self, name: str) -> str:
        """The path of a table with the same files for each name."""
        made, target = self.folder / "made", self.folder / name / "target"
        if not made.exists():
            self.made(str(made))
        shutil.copytree(made, target)
        return str(target)

    def run(self, command: Callable[[str], object], options: PruningOptions = OPTIONS, *hidden: str) -> list[Any]:
        """The rows, without some columns, the metrics and the error of a command that gets the path of the target."""
        found = []
        for name in ("stock", "enabled"):
            target = self.copy(name)
            if name == "enabled":
                self.enabled(options)
            error = None
            try:
                command(target)
            except Exception as failed:  # noqa: BLE001 - both have to fail alike
                error = type(failed), str(failed).split(" ")[0]
            df = self.spark.read.format("delta").load(target).drop(*hidden)
            found.append({"rows": Rows(df.collect()), "counted": latest_commit(self.spark, target)[1], "error": error})
        return found
