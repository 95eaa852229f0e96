"""The scan of the target of a MERGE, of which files without a key of the source need not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from connectors.base import Table
from connectors.delta.file_index import merge_target
from connectors.delta.log import Uris
from connectors.spark.jvm import frame_of
from connectors.spark.own_queries import own_query
from connectors.spark.scan_text import shown
from pruning.reasons import Reason, ReasonCode, size
from pruning.values.ranges import BoolArray

_TARGET = "the target of the command"


@dataclass(frozen=True, slots=True, eq=False)
class MergeScan:
    """A `CommandScan` of the files in which Delta looks for rows that match the source, or which it writes anew."""

    plan: Any
    needs_a_row: bool
    refusal: Reason | None
    _spark: SparkSession
    _target: Any

    def is_scan(self, leaf: Any) -> bool:
        """True for the leaf of the target."""
        return bool(self._target.isTarget(leaf))

    @property
    def nbytes(self) -> int:
        """The bytes of the files that Delta chose."""
        return int(self._target.bytes())

    def has_row(self, table: Table, kept: BoolArray) -> bool:
        """True if some row of the kept files passes the filters of the target."""
        return not own_query(frame_of(self._spark, self._target.rows(_paths(table, kept)))).isEmpty()

    def over(self, table: Table, kept: BoolArray, text: str) -> Any:
        """The plan of the MERGE over the kept files."""
        return self._target.over(_paths(table, kept), shown(text))


def _paths(table: Table, kept: BoolArray) -> str:
    """The paths of files in the log, with line feeds between them."""
    names = table.files([]).names
    if not isinstance(names, Uris) or len(kept) != len(names):
        msg = f"its log lists {len(names)} files, and {len(kept)} were looked at"
        raise ValueError(msg)
    return "\n".join(names.paths.filter(pa.array(kept)).to_pylist())


def merge_scan(spark: SparkSession, plan: Any) -> MergeScan | Reason | None:
    """The scan of the target in an optimised plan of a MERGE; a `Reason` if its files are not known.

    None if the plan reads no files that a command of Delta chose.
    """
    target = merge_target(spark, plan)
    if target is None or not target.isFound():
        return None
    if (refusal := target.refusal()) is not None:
        count = int(target.files())
        chosen = f"{count:,} file{'' if count == 1 else 's'} ({size(int(target.bytes()))}) chosen by Delta"
        reason, listed = Reason(ReasonCode.COMMAND, _TARGET, f"{chosen}; {refusal}"), target.listed()
        if listed is None:
            return reason
        return MergeScan(listed, needs_a_row=False, refusal=reason, _spark=spark, _target=target)
    # Adaptive execution drops the source, whose rows Delta counts, if the target of an inner join has no row.
    is_inner = bool(target.isInner())
    return MergeScan(target.readable(), needs_a_row=is_inner, refusal=None, _spark=spark, _target=target)
