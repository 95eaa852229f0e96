"""A MERGE beside another writer of its target: it conflicts, or does not, as without pruning."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest

from connectors.session import session_pruning
from pruning import PruningOptions
from sample_data.rows import Rows
from tests.queries.star import OPTIONS
from tests.session.merging import INSERT, UPSERT

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("star", ["delta"], indirect=True)]

BESIDE = {
    "append": "INSERT INTO delta.`{target}` VALUES (1, 1, 1)",
    "delete in a file that is skipped": "DELETE FROM delta.`{target}` WHERE amount = 4",
    "delete in a file that is read": "DELETE FROM delta.`{target}` WHERE amount = 1625",
    "optimize": "OPTIMIZE delta.`{target}`",
    "merge": UPSERT,
}


SEARCH, REWRITING = 1, 2
# A MERGE that only inserts does both at once.
MOMENTS = {
    "upsert, search": (UPSERT, SEARCH),
    "upsert, rewriting": (UPSERT, REWRITING),
    "insert, search": (INSERT, SEARCH),
}
VECTORS = "TBLPROPERTIES (delta.enableDeletionVectors = true)"


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize(("command", "moment"), MOMENTS.values(), ids=MOMENTS)
@pytest.mark.parametrize("properties", ["", VECTORS], ids=["plain", "vectors"])
def test_conflicts_are_those_of_delta(
    spark, arrived, both, enabled, monkeypatch, command, moment, beside, properties, targets
):
    """Another writer commits while the target of a MERGE is looked through, or while files are written anew."""
    both.declared("day INT, item INT, amount LONG", properties)
    found = []
    for name, options in (("stock", PruningOptions(enabled=False)), ("pruned", OPTIONS)):
        target, inner, plans = both.copy(name), session_pruning.prune_command, [0]

        def commit_beside(*arguments: Any, target: str = target, inner: Any = inner, plans: Any = plans) -> Any:
            result = inner(*arguments)
            plans[0] += 1
            if plans[0] == moment:
                # A session of its own: that of the MERGE has a transaction in this thread.
                worker = Thread(
                    target=lambda: spark.newSession().sql(beside.format(target=target, source=arrived)).collect()
                )
                worker.start()
                worker.join()
            return result

        enabled(options)
        with monkeypatch.context() as patched:
            patched.setattr(session_pruning, "prune_command", commit_beside)
            try:
                spark.sql(command.format(target=target, source=arrived))
                error = ""
            except Exception as failed:  # noqa: BLE001 - both have to fail alike
                error = f"{type(failed).__name__} {str(failed).split(' ')[0]}"
        assert plans[0] >= moment
        versions = [each["operation"] for each in spark.sql(f"DESCRIBE HISTORY delta.`{target}`").collect()]
        found.append((error, versions, Rows(spark.read.format("delta").load(target).collect())))
    assert found[0] == found[1]
    # The other writer commits in any case.
    assert len(found[0][1]) == 3 + (not found[0][0])
    assert targets.kept()
