"""Whether a predicate spares storage more than looking at it costs to read.

For a predicate the reader opens every dictionary and page index of the column, to find row groups and pages without a
match. Beside large row groups that is little. Beside small ones it pays where few rows match, and for a long IN list,
which counts only by its span, not where that covers next to all rows.
"""

from __future__ import annotations

import numpy as np

from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.selectivity import dictionary_bytes, span_ratio
from pruning.statistics import ColumnStatistics, Containers

# `spark.sql.parquet.pushdown.inFilterThreshold`, as it is by default.
_LOOKED_UP = 10
_MOST_SPANNED = 0.9
_FEW_MATCHES = 20
_MOST_LOOKED_AT = 0.02
# A dictionary and a page index, however small, are each a read of their own.
_LEAST_READ = 2 * 4096


def list_spans_nearly_all(column: ColumnStatistics, containers: Containers, kept: BoolArray, domain: Domain) -> bool:
    """Whether an IN list of the values of `domain` is long, and its span covers next to all rows that are kept."""
    if (domain.ranges.point_count() or 0) <= _LOOKED_UP:
        return False
    return span_ratio(column, containers.rows, kept, domain) >= _MOST_SPANNED


def looking_pays(column: ColumnStatistics, containers: Containers, kept: BoolArray, ratio: float) -> bool:
    """Whether what a predicate makes the reader open is little, or few rows match: `ratio` is the share expected."""
    rows = np.maximum(containers.rows[kept], 1)
    if len(rows) == 0 or ratio * float(rows.mean()) < _FEW_MATCHES:
        return True
    looked_at = dictionary_bytes(column.take(np.flatnonzero(kept)), rows) + _LEAST_READ
    return int(looked_at.sum()) <= _MOST_LOOKED_AT * int(containers.sizes[kept].sum())
