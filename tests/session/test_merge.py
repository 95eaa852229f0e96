"""MERGE, UPDATE and DELETE in a session that prunes: tables and history are those of Delta without pruning."""

from __future__ import annotations

import pytest

from sample_data.rows import Rows
from tests.queries.star import OPTIONS

pytestmark = pytest.mark.spark

KEYS = "SELECT s.day, s.item, s.amount FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
ON = "MERGE INTO delta.`{target}` t USING ({keys}) s ON t.amount = s.amount"
COMMANDS = {
    "update and insert": ON + " WHEN MATCHED THEN UPDATE SET item = -s.item WHEN NOT MATCHED THEN INSERT *",
    "nothing matches": ON + " AND t.day < 0 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "insert only": ON + " WHEN NOT MATCHED THEN INSERT *",
    "by source": ON + " WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.day < 3 THEN DELETE",
    "update": "UPDATE delta.`{target}` SET item = 0 WHERE day BETWEEN 30 AND 70",
    "delete": "DELETE FROM delta.`{target}` WHERE day BETWEEN 30 AND 70",
}
_TIMES = ("Ms", "Bytes")


def counted(spark, target: str) -> dict[str, str]:
    """The metrics of the latest commit that do not depend on time or on the layout of files."""
    metrics = spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").first()["operationMetrics"]
    return {name: value for name, value in metrics.items() if not any(each in name for each in _TIMES)}


@pytest.mark.parametrize("star", ["delta"], indirect=True)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_of_delta_do_what_they_do_without_pruning(spark, star, enabled, tmp_path, command):
    found = []
    for name in ("stock", "enabled"):
        target = str(tmp_path / name)
        spark.table(f"{star}sales").where("amount % 3 = 0").write.format("delta").save(target)
        if name == "enabled":
            enabled(OPTIONS)
        keys = KEYS.format(sales=f"{star}sales", days=f"{star}days")
        spark.sql(command.format(target=target, keys=keys))
        found.append((Rows(spark.read.format("delta").load(target).collect()), counted(spark, target)))
    assert found[0] == found[1]
    assert any(value != "0" for value in found[1][1].values())
