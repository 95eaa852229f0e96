"""Which versions of Delta tables an executed DataFrame read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from pruning.reasons import Reason, ReasonCode

_PREPARED = "PreparedDeltaFileIndex"
_UNPREPARED = "TahoeLogFileIndex"


def versions_read(executed: DataFrame, name: str) -> tuple[Mapping[str, int], Sequence[Reason]]:
    """Path of each Delta table in the plan that ran to its version, and a reason for each that is not pinned.

    A table read at two versions has the older one here. Empty where the plan does not tell, as for cached data.
    """
    versions: dict[str, int] = {}
    unpinned: dict[str, int] = {}
    try:
        for index in _file_indexes(executed._jdf.queryExecution().optimizedPlan()):  # noqa: SLF001
            kind = str(index.getClass().getSimpleName())
            if kind not in {_PREPARED, _UNPREPARED}:
                continue
            path, version = str(index.path().toString()), int(index.version())
            versions[path] = min(version, versions.get(path, version))
            pinned = index.versionScanned() if kind == _PREPARED else index.versionToUse()
            if not pinned.isDefined():
                unpinned[path] = versions[path]
    except Py4JError:
        return {}, ()
    reasons = [
        Reason(ReasonCode.UNPINNED_KEYS, name, f"version {version} of {path}") for path, version in unpinned.items()
    ]
    return versions, reasons


def _file_indexes(plan: Any) -> Iterator[Any]:
    for part in (plan, *_items(plan.subqueriesAll())):
        for leaf in _items(part.collectLeaves()):
            if leaf.getClass().getSimpleName() != "LogicalRelation":
                continue
            relation = leaf.relation()
            if relation.getClass().getSimpleName() == "HadoopFsRelation":
                yield relation.location()


def _items(sequence: Any) -> Iterator[Any]:
    for at in range(sequence.size()):
        yield sequence.apply(at)
